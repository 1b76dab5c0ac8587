// The views by the first part of the route. A view's modules are loaded when it is first shown; the others shortly after that, so
// that they work even if the console becomes unreachable.

import { effect, html, signal } from "../html.js";
import { Empty } from "../components/problem.js";
import { Head } from "../components/fields.js";
import { may, me, REQUIRED_ROLE, role } from "../session.js";
import { link, overview } from "../state.js";

const PRELOAD_MS = 1500;

/** By the first part of the route; `one` is the view for a longer route. */
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
  audit: { title: "Audit log", file: "audit", name: "Audit" },
  config: { title: "Settings", file: "config", name: "Config" },
};

const loaded = signal({}); // views by file
const tries = new Map(); // number of imports by file; browsers remember a failed import, so each retry needs a new URL
const loading = new Set(); // files

/** Return {title, View, key} of a route; View is null while it is loading. */
export function viewOf(parts) {
  const found = Object.hasOwn(VIEWS, parts[0] ?? "") && VIEWS[parts[0]];
  if (!found) return { title: "Not found", View: Unknown };
  const needed = REQUIRED_ROLE[parts[0]];
  if (needed && !me.value) return { title: found.title, View: null }; // the role is not known yet
  if (needed && !may(needed)) return { title: found.title, View: Forbidden };
  const { file, name } = parts[1] !== undefined && found.one ? found.one : found;
  const View = loaded.value[file] ?? null;
  if (!View && link.value.state !== "lost") load(file, name); // tried again after a reconnect
  return { title: found.title, View, key: found.one && parts[1] };
}

async function load(file, name) {
  if (loading.has(file) || loaded.peek()[file]) return;
  loading.add(file);
  const tried = tries.get(file) ?? 0;
  tries.set(file, tried + 1);
  try {
    const module = await import(`./${file}.js${tried ? `?${tried}` : ""}`);
    loaded.value = { ...loaded.peek(), [file]: module[name] };
  } catch {
    // the console is unreachable: viewOf() tries again
  } finally {
    loading.delete(file);
  }
}

function loadAll() {
  for (const { one, ...each } of Object.values(VIEWS))
    for (const { file, name } of one ? [each, one] : [each]) load(file, name);
}

/** Load the other views once the first one is shown. */
const stop = effect(() => {
  if (!overview.value) return;
  setTimeout(() => {
    stop();
    (window.requestIdleCallback ?? setTimeout)(loadAll);
  }, PRELOAD_MS);
});

const Forbidden = ({ parts }) => html`
  <${Head} title=${VIEWS[parts[0]].title} />
  <${Empty} title=${`This view requires the role ${REQUIRED_ROLE[parts[0]]}; your role is ${role.value || "unknown"}.`}>
    Ask the console's administrator for a token with a higher role.
  <//>
`;

const Unknown = () => html`
  <${Head} title="Page not found" />
  <${Empty} title="This console has no view at this address.">
    It may belong to another version. <a href="#/overview">Go to the overview</a>
  <//>
`;
