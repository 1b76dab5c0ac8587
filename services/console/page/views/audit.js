// Who changed what, or tried to.

import { html } from "../html.js";
import { usePages } from "../asking.js";
import { Badge, Filter, Head, More, Time } from "../parts/fields.js";
import { Empty, ProblemBox } from "../parts/problem.js";
import { Table, Tally } from "../parts/table.js";
import { route } from "../routes.js";

const detailOf = ({ detail }) =>
  typeof detail === "string"
    ? detail
    : Object.entries(detail ?? {})
        .map(([name, value]) => `${name} ${typeof value === "string" ? value : JSON.stringify(value)}`)
        .join(", ");

const COLUMNS = [
  { key: "at", title: "When", width: "8.5rem", isHead: true, cell: (row) => html`<${Time} at=${row.at} />` },
  { key: "who", title: "Who", width: "9rem", prio: 2, cell: (row) => (["token", "proxy"].includes(row.auth) ? `${row.who} (${row.auth})` : row.who) },
  { key: "role", title: "Role", width: "5.5rem", prio: 4, cell: (row) => row.role },
  { key: "address", title: "From", width: "9rem", prio: 4, cell: (row) => row.address },
  { key: "action", title: "Did", width: "min(10rem, 27vw)", cell: (row) => row.action },
  { key: "target", title: "To", cell: (row) => row.target },
  {
    key: "outcome",
    title: "Outcome",
    width: "9rem",
    prio: 2,
    cell: (row) => html`<${Badge} tone=${/^(done|ok)/.test(row.outcome) ? "good" : "bad"}>${row.outcome}<//>`,
  },
  {
    key: "detail",
    title: "Detail",
    width: "18%",
    prio: 3,
    cell: (row) => html`<span title=${detailOf(row)}>${detailOf(row)}</span>`,
  },
];

export function Audit() {
  const pages = usePages("audit", { limit: 200 });
  const { filter = "" } = route.value.query;
  const rows = pages.items.filter((row) => JSON.stringify(row).toLowerCase().includes(filter.toLowerCase()));
  return html`
    <${Head} title="Audit" actions=${html`<button disabled=${pages.isBusy} onClick=${pages.again}>Look again</button>`}>
      <p class="soft">Every change that was asked of the console, also those that were refused; the newest first.</p>
    <//>
    <div class="tools"><${Filter} label="Filter what is shown" /><${Tally} shown=${rows.length} all=${pages.items.length} one="entry" many="entries" /></div>
    <${ProblemBox} problem=${pages.problem} again=${pages.again} />
    ${pages.isLoading && html`<p class="soft loading" aria-busy="true">Loading…</p>`}
    ${
      !pages.isLoading &&
      !pages.problem &&
      html`<${Table} label="Audit log" columns=${COLUMNS} rows=${rows} keyOf=${(row) => `${row.at} ${row.action} ${row.target} ${row.outcome} ${JSON.stringify(row.detail)}`}
      empty=${html`<${Empty} title=${pages.items.length ? "No entry matches." : "Nobody has changed anything yet."} />`} />`
    }
    <${More} pages=${pages} what="entries" />
  `;
}
