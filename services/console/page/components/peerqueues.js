// List the queues whose messages are forwarded to a peer.

import { html, useState } from "../html.js";
import { at, read } from "../api.js";
import { usePolling } from "../fetching.js";
import { count } from "../formats.js";
import { href } from "../routes.js";
import { overview, queueList } from "../state.js";
import { Badge, Figure } from "./fields.js";
import { Empty } from "./problem.js";
import { Table } from "./table.js";

const EVERY_MS = 5000;
const MAX_QUEUES = 50; // fetched one by one, as the event stream does not name peers

const COLUMNS = [
  {
    key: "name",
    title: "Queue",
    isHead: true,
    sort: (row) => row.name,
    cell: ({ name, paused, condition }, tab) => html`
      <a href=${href(["queues", name])} tabindex=${tab}>${name}</a>
      ${paused && html` <${Badge} tone="warn">Paused<//>`} ${condition && html` <${Badge} tone="bad" title=${condition}>${condition}<//>`}
    `,
  },
  ...[
    ["ready", "Ready", (row) => row.ready],
    ["inFlight", "In flight", (row) => row.inFlight],
    ["errors", "Errors", (row) => row.counters.sendErrors ?? row.counters.send_errors ?? 0],
  ].map(([key, title, value]) => ({
    ...{ key, title, isNumber: true, width: "min(6rem, 19vw)", sort: value },
    cell: (row) => html`<${Figure} value=${value(row)} format=${count} />`,
  })),
  { key: "by", title: "Forwarded by", width: "14rem", prio: 2, cell: ({ ownedBy }) => html`<code>${ownedBy}</code>` },
];

export function PeerQueues({ peer, protocol }) {
  const remote = queueList.value.filter((row) => row.remote === protocol).map(({ name }) => name);
  const details = useQueues(overview.value === null ? null : remote.slice(0, MAX_QUEUES));
  const rows = details?.filter((queue) => isForwardedTo(queue, peer)) ?? [];
  return html`
    <section>
      <h2>Queues forwarded to this peer</h2>
      ${!details && html`<p class="soft loading" aria-busy="true">Loading…</p>`}
      ${details && html`<${Table} label="Queues forwarded to this peer" columns=${COLUMNS} rows=${rows} keyOf=${({ name }) => name} sort="name" sortAs="queues" empty=${html`<${Empty} title="No queue is forwarded to this peer." />`} />`}
      ${remote.length > MAX_QUEUES && html`<p class="soft">Checked the first ${MAX_QUEUES} of ${count(remote.length)} queues that are forwarded over ${protocol}.</p>`}
    </section>
  `;
}

/** A queue that names no peers is forwarded to all peers of its protocol. */
const isForwardedTo = ({ spec: { remote } }, peer) => remote && (!remote.peers?.length || remote.peers.includes(peer));

/**
 * Fetch queues one by one, every few seconds; null until the first time. Deleted queues are left out; if a request fails, the last
 * result stays. names: null = not known yet.
 */
function useQueues(names) {
  const [details, setDetails] = useState(null);
  const fetchAll = async (signal) => {
    const found = await Promise.allSettled(names.map((name) => read(at`queues/${name}`, {}, signal)));
    const isLost = found.some(({ reason }) => reason && reason.status !== 404);
    if (!signal.aborted && !isLost) setDetails(found.flatMap(({ value }) => (value ? [value.data] : [])));
  };
  usePolling(fetchAll, names?.join("\n"), names !== null, EVERY_MS);
  return details;
}
