// Who changed what, or tried to.

import { html } from "../html.js";
import { usePages, useSettled } from "../asking.js";
import { count } from "../formats.js";
import { seen } from "../names.js";
import { Badge, Field, Filter, Head, More, Time } from "../parts/fields.js";
import { Empty, ProblemBox } from "../parts/problem.js";
import { Table } from "../parts/table.js";
import { route } from "../routes.js";

const detailOf = ({ detail }) =>
  typeof detail === "string"
    ? detail
    : Object.entries(detail ?? {})
        .map(([name, value]) => `${name} ${typeof value === "string" ? value : JSON.stringify(value)}`)
        .join(", ");

const COLUMNS = [
  { key: "at", title: "When", width: "8.5rem", isHead: true, cell: (row) => html`<${Time} at=${row.at} />` },
  { key: "who", title: "Who", width: "9rem", prio: 2, cell: (row) => (row.auth ? `${row.who} (${row.auth})` : row.who) },
  { key: "role", title: "Role", width: "5.5rem", prio: 4, cell: (row) => row.role },
  { key: "address", title: "From", width: "9rem", prio: 4, cell: (row) => row.address },
  { key: "action", title: "Did", width: "min(10rem, 27vw)", cell: (row) => row.action },
  { key: "target", title: "To", cell: (row) => seen(row.target) },
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

/** What of the address is a filter, as the API has it. */
const filterOf = ({ who = "", action = "", target = "", from = "", to = "" }) => ({ who, action, target, from, to });

const digits = (n, places = 2) => String(n).padStart(places, "0");

/** In the address a time is of UTC, as others may be sent it; in its field it is of here. A year may have five digits. */
const toLocal = (text) => {
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return "";
  const day = `${digits(at.getFullYear(), 4)}-${digits(at.getMonth() + 1)}-${digits(at.getDate())}`;
  return `${day}T${digits(at.getHours())}:${digits(at.getMinutes())}`;
};
const toUtc = (text) => (text ? new Date(text).toISOString() : "");

const Filters = () => html`
  <div class="filters many" role="search" aria-label="Filter the audit log">
    <div><span aria-hidden="true">To what</span><${Filter} name="target" label="To what" placeholder="a part of a name" /></div>
    <${Field} name="who" label="Who" placeholder="a part of a name" />
    <${Field} name="action" label="Did" placeholder="purge, queue., …" />
    <${Field} name="from" label="From" type="datetime-local" read=${toLocal} write=${toUtc} />
    <${Field} name="to" label="Until" type="datetime-local" read=${toLocal} write=${toUtc} />
  </div>
`;

export function Audit() {
  const filter = useSettled(filterOf(route.value.query));
  const pages = usePages("audit", { ...filter, limit: 200 });
  const rows = pages.items;
  const isFiltered = Object.values(filter).some(Boolean);
  return html`
    <${Head} title="Audit" actions=${html`<button disabled=${pages.isBusy} onClick=${pages.again}>Look again</button>`}>
      <p class="soft">Every change that was asked of the console, also those that were refused; the newest first.</p>
    <//>
    <${Filters} />
    <p class="soft" aria-live="polite">${pages.isLoading ? "" : `${count(rows.length)}${pages.hasMore ? " or more" : ""} ${rows.length === 1 ? "entry" : "entries"}`}</p>
    <${ProblemBox} problem=${pages.problem} again=${pages.again} />
    ${pages.isLoading && html`<p class="soft loading" aria-busy="true">Loading…</p>`}
    ${
      !pages.isLoading &&
      !pages.problem &&
      html`<${Table} label="Audit log" columns=${COLUMNS} rows=${rows} keyOf=${(row) => `${row.at} ${row.action} ${row.target} ${row.outcome} ${JSON.stringify(row.detail)}`}
      empty=${html`<${Empty} title=${isFiltered ? "No entry matches." : "Nobody has changed anything yet."} />`} />`
    }
    <${More} pages=${pages} what="entries" />
  `;
}
