// Queues that have dead letters.

import { html } from "../html.js";
import { count, rate } from "../formats.js";
import { Figure, Filter, Head } from "../components/fields.js";
import { Empty, NoMatch } from "../components/problem.js";
import { Table, Tally } from "../components/table.js";
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
    title: "Died/s",
    isNumber: true,
    width: "6rem",
    sort: (row) => row.rates.died ?? -1,
    cell: (row) => html`<${Figure} value=${row.rates.died} format=${rate} />`,
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
    <${Head} title="Dead letters"><p class="soft">Messages that could not be delivered, by queue: ${count(deadTotal.value)} in total.</p><//>
    <div class="tools"><${Filter} label="Filter by queue" /><${Tally} shown=${rows.length} all=${all.length} one="queue" /></div>
    ${
      overview.value
        ? html`<${Table} label="Queues with dead letters" columns=${COLUMNS} rows=${rows} keyOf=${(row) => row.name} sort="-dead"
          empty=${all.length ? html`<${NoMatch} what="queue" view="dead" />` : html`<${Empty} title="No dead letters.">Messages that expire, fail too often or are rejected are kept here.<//>`} />`
        : html`<p class="soft loading" aria-busy="true">Loading…</p>`
    }
  `;
}
