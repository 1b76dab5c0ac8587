// What the console tells by itself, as signals: whoever shows one of them is drawn again when it changes.

import { batch, computed, signal } from "./html.js";
import { followed } from "./flows.js";
import { heard } from "./formats.js";
import { me } from "./session.js";

/** How the stream of events is: {state: connecting|live|lost, since, retryAt}. */
export const link = signal({ state: "connecting", since: Date.now(), retryAt: 0 });
export const version = signal("");
/** How often the stream tells how things stand. */
export const refreshMs = signal(2000);
/** Why the console cannot see the store; '' = it does. */
export const trouble = signal("");
export const overview = signal(null);
/** Name → QueueSummary. A new map for each change. */
export const queues = signal(new Map());
export const edges = signal(null);
export const jobs = signal(null);
/** Of all queues together, as far as this page has seen them: {at: [s], in: [], out: [], acked: []}. */
export const rates = signal({ at: [], in: [], out: [], acked: [] });

export const queueList = computed(() => [...queues.value.values()]);
export const deadTotal = computed(() => queueList.value.reduce((sum, queue) => sum + queue.dead, 0));
export const running = computed(() => (jobs.value ?? []).filter((job) => job.state === "running"));

const handlers = {
  hello(told) {
    version.value = told.version ?? "";
    refreshMs.value = told.refreshMs ?? refreshMs.peek();
    if (told.role) me.value = { ...me.peek(), ...pick(told, ["who", "role", "auth"]) };
  },
  overview(told) {
    overview.value = told;
    heard(told.at);
    trouble.value = "";
    rates.value = followed(rates.peek(), told);
  },
  queues(told) {
    const next = told.whole ? new Map() : new Map(queues.peek());
    for (const queue of told.rows ?? told.items) next.set(queue.name, queue);
    for (const name of told.gone ?? []) next.delete(name);
    queues.value = next;
  },
  edges: (told) => (edges.value = told.items),
  jobs: (told) => (jobs.value = told.items),
  trouble: (told) => (trouble.value = told.detail ?? "The store does not answer."),
};

function pick(told, wanted) {
  return Object.fromEntries(wanted.filter((name) => name in told).map((name) => [name, told[name]]));
}

/** An event of the stream; those that this page does not know are for newer ones. */
export function happened(event, told) {
  batch(() => handlers[event]?.(told));
}

/** As before anything was told: somebody else signs in. */
export function clear() {
  batch(() => {
    overview.value = edges.value = jobs.value = null;
    queues.value = new Map();
    rates.value = { at: [], in: [], out: [], acked: [] };
  });
}
