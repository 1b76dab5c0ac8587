// Subscriptions of the text service's clients.

import { html } from "../html.js";
import { usePages } from "../fetching.js";
import { Badge, Filter, Head, LoadMore, MissingProcesses } from "../components/fields.js";
import { Empty, Loaded, NoMatch } from "../components/problem.js";
import { Table, Tally } from "../components/table.js";
import { route } from "../routes.js";

const COLUMNS = [
  {
    key: "pattern",
    title: "Pattern",
    isHead: true,
    sort: (row) => row.pattern,
    cell: ({ pattern, isBehind }) =>
      html`<code>${pattern}</code>${isBehind && html` <${Badge} tone="warn" title="slow consumer: served from the log">behind<//>`}`,
  },
  { key: "peer", title: "Subscriber", width: "min(14rem, 40vw)", sort: (row) => row.peer, cell: ({ peer }) => peer },
  { key: "id", title: "ID", width: "7rem", prio: 2, sort: (row) => String(row.id), cell: ({ id }) => id },
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
    <${Head} title="Subscriptions" actions=${html`<button disabled=${pages.isBusy} onClick=${pages.reload}>Refresh</button>`}>
      <p class="soft">Subscriptions of the text service's clients. For queues that subscribe, see their documents.</p>
    <//>
    <div class="tools"><${Filter} label="Filter by pattern or subscriber" />${pages.data && html`<${Tally} shown=${rows.length} all=${pages.items.length} one="subscription" />`}</div>
    <${MissingProcesses} pages=${pages} />
    <${Loaded} resource=${pages}>
      ${() => html`<${Table} label="Subscriptions" columns=${COLUMNS} rows=${rows} keyOf=${(row) => `${row.process} ${row.connection} ${row.id} ${row.pattern}`} sort="pattern"
        empty=${pages.items.length ? html`<${NoMatch} what="subscription" view="subscriptions" />` : html`<${Empty} title="No subscriptions.">Clients of the text service that subscribe are listed here.<//>`} />`}
    <//>
    <${LoadMore} pages=${pages} what="subscriptions" />
  `;
}
