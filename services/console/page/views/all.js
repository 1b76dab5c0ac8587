// Which view belongs to which address: the first part of the route. A view's modules come when it is first shown, all
// others in the pause after that: the first one is there sooner, and the rest although the console may be away then.

import { effect, html, signal } from "../html.js";
import { Empty } from "../parts/problem.js";
import { Head } from "../parts/fields.js";
import { may, me, NEEDS, role } from "../session.js";
import { link, overview } from "../state.js";

const PAUSE_MS = 1500;

/** By the first part of the route; `one` is for an address that goes on. */
const VIEWS = {
  overview: { title: "Overview", file: "overview", name: "Overview" },
  queues: { title: "Queues", file: "queues", name: "Queues", one: { file: "queue", name: "Queue" } },
  dead: { title: "Dead letters", file: "dead", name: "Dead" },
  jobs: { title: "Jobs", file: "jobs", name: "Jobs" },
  edges: { title: "Edges", file: "edges", name: "Edges" },
  connections: { title: "Connections", file: "connections", name: "Connections" },
  ring: { title: "Ring", file: "ring", name: "Ring" },
  peers: { title: "Peers", file: "peers", name: "Peers" },
  subscriptions: { title: "Subscriptions", file: "subscriptions", name: "Subscriptions" },
  reservations: { title: "Reservations", file: "reservations", name: "Reservations" },
  report: { title: "Report", file: "report", name: "Report" },
  audit: { title: "Audit", file: "audit", name: "Audit" },
  config: { title: "Settings", file: "config", name: "Config" },
};

const there = signal({}); // views that have come, by their files
const tries = new Map(); // how often each was asked for; of one that is on its way, nothing new

/** {title, View, key} of an address; View is null as long as it is on its way. */
export function viewOf(parts) {
  const found = Object.hasOwn(VIEWS, parts[0] ?? "") && VIEWS[parts[0]];
  if (!found) return { title: "Not found", View: Unknown };
  const needed = NEEDS[parts[0]];
  if (needed && !me.value) return { title: found.title, View: null }; // who we are is on its way
  if (needed && !may(needed)) return { title: found.title, View: Forbidden };
  const { file, name } = parts[1] !== undefined && found.one ? found.one : found;
  const View = there.value[file] ?? null;
  if (!View && link.value.state !== "lost") bring(file, name); // and again when the console is back
  return { title: found.title, View, key: found.one && parts[1] };
}

const coming = new Set();

async function bring(file, name) {
  if (coming.has(file) || there.peek()[file]) return;
  coming.add(file);
  const again = tries.get(file) ?? 0; // browsers remember that a module could not be had
  tries.set(file, again + 1);
  try {
    const module = await import(`./${file}.js${again ? `?${again}` : ""}`);
    there.value = { ...there.peek(), [file]: module[name] };
  } catch {
    // the console is away: whoever wants it asks again
  } finally {
    coming.delete(file);
  }
}

function bringAll() {
  for (const { one, ...each } of Object.values(VIEWS))
    for (const { file, name } of one ? [each, one] : [each]) bring(file, name);
}

/** Something is shown soon after the stream has begun, and then there is time. */
const done = effect(() => {
  if (!overview.value) return;
  setTimeout(() => {
    done();
    (window.requestIdleCallback ?? setTimeout)(bringAll);
  }, PAUSE_MS);
});

const Forbidden = ({ parts }) => html`
  <${Head} title=${VIEWS[parts[0]].title} />
  <${Empty} title=${`This needs the role ${NEEDS[parts[0]]}, and yours is ${role.value || "none"}.`}>
    Ask whoever runs the console for a token with more rights.
  <//>
`;

const Unknown = () => html`
  <${Head} title="There is no such page" />
  <${Empty} title="The address names nothing that this console has.">
    Perhaps it is of another version. <a href="#/overview">To the overview</a>
  <//>
`;
