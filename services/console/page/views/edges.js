// Edge processes and their state.

import { html } from "../html.js";
import { useResource } from "../fetching.js";
import { age, count, since } from "../formats.js";
import { Ago, Badge, Filter, Head } from "../components/fields.js";
import { Empty, NoMatch, ProblemBox } from "../components/problem.js";
import { Table, Tally } from "../components/table.js";
import { href, route } from "../routes.js";
import { edges } from "../state.js";

const COLUMNS = [
  {
    key: "edge",
    title: "Edge",
    isHead: true,
    width: "5.5rem",
    sort: (row) => row.edge,
    cell: (row, tab) =>
      html`<a href=${href(["connections"], { edge: row.edge })} tabindex=${tab}>${row.edge}</a>`,
  },
  {
    key: "ready",
    title: "State",
    width: "6rem",
    sort: (row) => Number(row.ready),
    cell: (row) =>
      html`<${Badge} tone=${row.ready ? "good" : "bad"}>${row.ready ? "ready" : "not ready"}<//>`,
  },
  {
    key: "connections",
    title: "Connections",
    isNumber: true,
    width: "6rem",
    sort: (row) => row.connections,
    cell: (row) => count(row.connections),
  },
  {
    key: "listeners",
    title: "Listens on",
    prio: 2,
    cell: (row) => html`<${Listeners} listeners=${row.listeners} />`,
  },
  { key: "host", title: "Host", width: "9rem", prio: 4, sort: (row) => row.host, cell: (row) => row.host },
  {
    key: "process",
    title: "Process",
    width: "11.5rem",
    prio: 2,
    sort: (row) => row.process,
    cell: (row) => html`<code>${row.process}</code>`,
  },
  {
    key: "version",
    title: "Version",
    width: "5.5rem",
    prio: 4,
    sort: (row) => row.version,
    cell: (row) => row.version,
  },
  {
    key: "started",
    title: "Up for",
    isNumber: true,
    width: "7.5rem",
    prio: 2,
    sort: (row) => -new Date(row.startedAt),
    cell: (row) => age(since(row.startedAt)),
  },
  {
    key: "seen",
    title: "Last seen",
    isNumber: true,
    width: "7rem",
    prio: 4,
    cell: (row) => html`<${Ago} at=${row.seenAt} />`,
  },
];

const Listeners = ({ listeners }) =>
  (listeners ?? []).map(
    ({ name, address }) => html`<span key=${name} class="soft">${name}</span> ${address} ${" "}`,
  );

export function Edges() {
  const resource = useResource(edges.value ? null : "edges");
  const all = edges.value ?? resource.data?.items ?? [];
  const { filter = "" } = route.value.query;
  const rows = all.filter((row) =>
    JSON.stringify([row.edge, row.host, row.process, row.listeners])
      .toLowerCase()
      .includes(filter.toLowerCase()),
  );
  return html`
    <${Head} title="Edges"><p class="soft">Edge processes of this store. A process is removed after 30 s without a heartbeat.</p><//>
    <div class="tools"><${Filter} label="Filter edges" /><${Tally} shown=${rows.length} all=${all.length} one="process" many="processes" /></div>
    ${!edges.value && html`<${ProblemBox} problem=${resource.problem} retry=${resource.reload} />`}
    ${
      edges.value || resource.data
        ? html`<${Table} label="Edges" columns=${COLUMNS} rows=${rows} keyOf=${(row) => `${row.edge} ${row.process}`} sort="edge" empty=${all.length ? html`<${NoMatch} what="edge" view="edges" />` : html`<${Empty} title="No edge is running on this store.">Start one with <code>penstock serve EDGE</code>.<//>`} />`
        : html`<p class="soft loading" aria-busy="true">Loading…</p>`
    }
    ${rows.filter(({ ready, unready }) => !ready && unready).map(({ process, edge, unready }) => html`<p key=${process} class="soft">${edge} ${process}: ${unready}</p>`)}
  `;
}
