// Who listens to what in the text service.

import { html } from "../html.js";
import { usePages } from "../asking.js";
import { Badge, Filter, Head, More, Silent } from "../parts/fields.js";
import { Empty, ProblemBox } from "../parts/problem.js";
import { Table, Tally } from "../parts/table.js";
import { route } from "../routes.js";

const COLUMNS = [
  {
    key: "pattern",
    title: "Pattern",
    isHead: true,
    sort: (row) => row.pattern,
    cell: ({ pattern, isBehind }) =>
      html`<code>${pattern}</code>${isBehind && html` <${Badge} tone="warn" title="it is served out of the log">behind<//>`}`,
  },
  { key: "peer", title: "Subscriber", width: "14rem", sort: (row) => row.peer, cell: ({ peer }) => peer },
  { key: "id", title: "Id", width: "7rem", prio: 2, sort: (row) => String(row.id), cell: ({ id }) => id },
  {
    key: "process",
    title: "Process",
    width: "14rem",
    prio: 3,
    sort: (row) => row.process,
    cell: ({ process }) => html`<code>${process}</code>`,
  },
  {
    key: "connection",
    title: "Connection",
    width: "12rem",
    prio: 3,
    cell: ({ connection }) => html`<code>${connection}</code>`,
  },
];

export function Subscriptions() {
  const pages = usePages("subscriptions", { limit: 1000 });
  const { filter = "" } = route.value.query;
  const rows = pages.items.filter(({ pattern, peer }) =>
    `${pattern} ${peer}`.toLowerCase().includes(filter.toLowerCase()),
  );
  return html`
    <${Head} title="Subscriptions" actions=${html`<button disabled=${pages.isBusy} onClick=${pages.again}>Look again</button>`}>
      <p class="soft">Of the text service's clients. Queues that subscribe are told of in their documents.</p>
    <//>
    <div class="tools"><${Filter} label="Filter by pattern or subscriber" /><${Tally} shown=${rows.length} all=${pages.items.length} one="subscription" /></div>
    <${ProblemBox} problem=${pages.problem} again=${pages.again} />
    <${Silent} pages=${pages} />
    ${pages.isLoading && html`<p class="soft loading" aria-busy="true">Asking the edges…</p>`}
    ${
      !pages.isLoading &&
      !pages.problem &&
      html`<${Table} label="Subscriptions" columns=${COLUMNS} rows=${rows} keyOf=${(row) => `${row.process} ${row.connection} ${row.id} ${row.pattern}`} sort="pattern"
      empty=${html`<${Empty} title=${pages.items.length ? "No subscription matches." : "Nobody subscribes."} />`} />`
    }
    <${More} pages=${pages} what="subscriptions" />
  `;
}
