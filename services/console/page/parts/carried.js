// Which queues lead to a peer, and how their messages fare.

import { html, useState } from "../html.js";
import { at, read } from "../api.js";
import { useRepeated } from "../asking.js";
import { count } from "../formats.js";
import { href } from "../routes.js";
import { overview, queueList } from "../state.js";
import { Badge, Figure } from "./fields.js";
import { Empty } from "./problem.js";
import { Table } from "./table.js";

const EVERY_MS = 5000;
const MOST = 50; // queues that are asked for; the stream does not tell where one leads

const COLUMNS = [
  {
    key: "name",
    title: "Queue",
    isHead: true,
    sort: (row) => row.name,
    cell: ({ name, paused, condition }, tab) => html`
      <a href=${href(["queues", name])} tabindex=${tab}>${name}</a>
      ${paused && html` <${Badge} tone="warn">paused<//>`} ${condition && html` <${Badge} tone="bad" title=${condition}>${condition}<//>`}
    `,
  },
  ...[
    ["ready", "Waiting", (row) => row.ready],
    ["inFlight", "In flight", (row) => row.inFlight],
    ["errors", "Errors", (row) => row.counters.sendErrors ?? row.counters.send_errors ?? 0],
  ].map(([key, title, value]) => ({
    ...{ key, title, isNumber: true, width: "min(6rem, 19vw)", sort: value },
    cell: (row) => html`<${Figure} value=${value(row)} write=${count} />`,
  })),
  { key: "by", title: "Carried by", width: "14rem", prio: 2, cell: ({ ownedBy }) => html`<code>${ownedBy}</code>` },
];

export function Carried({ peer, protocol }) {
  const remote = queueList.value.filter((row) => row.remote === protocol).map(({ name }) => name);
  const details = useDetails(overview.value === null ? null : remote.slice(0, MOST));
  const rows = details?.filter((queue) => leadsTo(queue, peer)) ?? [];
  return html`
    <section>
      <h2>Queues that lead here</h2>
      ${!details && html`<p class="soft loading" aria-busy="true">Loading…</p>`}
      ${details && html`<${Table} label="Queues that lead here" columns=${COLUMNS} rows=${rows} keyOf=${({ name }) => name} sort="name" sortAs="queues" empty=${html`<${Empty} title="No queue leads to this peer." />`} />`}
      ${remote.length > MOST && html`<p class="soft">Of ${count(remote.length)} queues that lead elsewhere over ${protocol}, the first ${MOST} were looked at.</p>`}
    </section>
  `;
}

/** None named: all that are known of that protocol. */
const leadsTo = ({ spec: { remote } }, peer) => remote && (!remote.peers?.length || remote.peers.includes(peer));

/**
 * Queues as they are told one by one, asked for every few seconds; null: not yet. One that is gone meanwhile is left out;
 * what was known stays while one cannot be asked. names: null = nobody knows them yet.
 */
function useDetails(names) {
  const [details, tell] = useState(null);
  const ask = async (signal) => {
    const found = await Promise.allSettled(names.map((name) => read(at`queues/${name}`, {}, signal)));
    const isLost = found.some(({ reason }) => reason && reason.status !== 404);
    if (!signal.aborted && !isLost) tell(found.flatMap(({ value }) => (value ? [value.data] : [])));
  };
  useRepeated(ask, names?.join("\n"), names !== null, EVERY_MS);
  return details;
}
