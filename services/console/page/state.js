// State that the console's event stream keeps up to date, as signals.

import { batch, computed, signal } from "./html.js";
import { withSample } from "./flows.js";
import { syncClock } from "./formats.js";
import { me } from "./session.js";

/** State of the event stream: {state: connecting|live|lost, since, retryAt}. */
export const link = signal({ state: "connecting", since: Date.now(), retryAt: 0 });
export const version = signal("");
/** Interval of overview events. */
export const refreshMs = signal(2000);
/** Why the console cannot read the store; '' if it can. */
export const storeProblem = signal("");
export const overview = signal(null);
/** Name → QueueSummary. A new map for each change. */
export const queues = signal(new Map());
export const edges = signal(null);
export const jobs = signal(null);
/** Rates of all queues together since the page was opened: {at: [s], in: [], out: [], acked: []}. */
export const rates = signal({ at: [], in: [], out: [], acked: [] });

export const queueList = computed(() => [...queues.value.values()]);
export const deadTotal = computed(() => queueList.value.reduce((sum, queue) => sum + queue.dead, 0));
export const runningJobs = computed(() => (jobs.value ?? []).filter((job) => job.state === "running"));

const handlers = {
  hello(data) {
    version.value = data.version ?? "";
    refreshMs.value = data.refreshMs ?? refreshMs.peek();
    const { who, role, auth } = data;
    if (role) me.value = { ...me.peek(), who, role, auth };
  },
  overview(data) {
    overview.value = data;
    syncClock(data.at);
    storeProblem.value = "";
    rates.value = withSample(rates.peek(), data);
  },
  queues(data) {
    const next = data.whole ? new Map() : new Map(queues.peek());
    for (const queue of data.rows) next.set(queue.name, queue);
    for (const name of data.gone) next.delete(name);
    queues.value = next;
  },
  edges: (data) => (edges.value = data.items),
  jobs: (data) => (jobs.value = data.items),
  trouble: (data) => (storeProblem.value = data.detail || "no details"),
};

/** Handle an event of the stream; events of newer consoles are ignored. */
export function dispatch(event, data) {
  batch(() => handlers[event]?.(data));
}

/** Drop everything that the stream sent: another user may sign in. */
export function clear() {
  batch(() => {
    overview.value = edges.value = jobs.value = null;
    queues.value = new Map();
    rates.value = { at: [], in: [], out: [], acked: [] };
  });
}
