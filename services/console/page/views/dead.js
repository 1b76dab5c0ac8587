// Which queues have dead letters; what died is seen in each.

import { html } from "../html.js";
import { count, rate } from "../formats.js";
import { Figure, Filter, Head } from "../parts/fields.js";
import { Empty } from "../parts/problem.js";
import { Table, Tally } from "../parts/table.js";
import { href, route } from "../routes.js";
import { deadTotal, overview, queueList } from "../state.js";

const COLUMNS = [
  {
    key: "name",
    title: "Queue",
    isHead: true,
    sort: (row) => row.name,
    cell: ({ name }, tab) => html`<a href=${href(["queues", name, "dead"])} tabindex=${tab}>${name}</a>`,
  },
  {
    key: "dead",
    title: "Dead letters",
    isNumber: true,
    width: "8rem",
    sort: (row) => row.dead,
    cell: (row) => html`<${Figure} value=${row.dead} />`,
  },
  {
    key: "died",
    title: "Dying/s",
    isNumber: true,
    width: "6rem",
    sort: (row) => row.rates.died ?? -1,
    cell: (row) => html`<${Figure} value=${row.rates.died} write=${rate} />`,
  },
  {
    key: "ready",
    title: "Ready",
    isNumber: true,
    width: "6rem",
    prio: 2,
    sort: (row) => row.ready,
    cell: (row) => html`<${Figure} value=${row.ready} />`,
  },
];

export function Dead() {
  const { filter = "" } = route.value.query;
  const all = queueList.value.filter((queue) => queue.dead > 0);
  const rows = all.filter(({ name }) => name.toLowerCase().includes(filter.toLowerCase()));
  return html`
    <${Head} title="Dead letters"><p class="soft">Messages that could not be delivered, in the queues where they died: ${count(deadTotal.value)} in all.</p><//>
    <div class="tools"><${Filter} label="Filter by queue" /><${Tally} shown=${rows.length} all=${all.length} one="queue" /></div>
    ${
      overview.value
        ? html`<${Table} label="Queues with dead letters" columns=${COLUMNS} rows=${rows} keyOf=${(row) => row.name} sort="-dead"
          empty=${html`<${Empty} title=${all.length ? "No queue matches." : "Nothing died, or all of it has been dealt with."} />`} />`
        : html`<p class="soft loading" aria-busy="true">Loading…</p>`
    }
  `;
}
