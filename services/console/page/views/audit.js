// The audit log: changes that were requested, and their outcomes.

import { html } from "../html.js";
import { usePages, useDebounced } from "../fetching.js";
import { count } from "../formats.js";
import { visibleName } from "../names.js";
import { Badge, Field, Filter, Head, LoadMore, Time } from "../components/fields.js";
import { Empty, Loaded, NoMatch } from "../components/problem.js";
import { Table } from "../components/table.js";
import { route } from "../routes.js";

/** Format details, a JSON object: 'job 3f, moved 12'. */
function detailOf({ detail }) {
  try {
    return Object.entries(JSON.parse(detail))
      .map(([name, value]) => `${name} ${typeof value === "string" ? value : JSON.stringify(value)}`)
      .join(", ");
  } catch {
    return detail; // none, or cut at its limit
  }
}

const COLUMNS = [
  { key: "at", title: "Time", width: "min(8.5rem, 29vw)", isHead: true, cell: (row) => html`<${Time} at=${row.at} />` },
  { key: "who", title: "User", width: "9rem", prio: 2, cell: (row) => (row.auth ? `${row.who} (${row.auth})` : row.who) },
  { key: "role", title: "Role", width: "5.5rem", prio: 4, cell: (row) => row.role },
  { key: "address", title: "Address", width: "9rem", prio: 4, cell: (row) => row.address },
  { key: "action", title: "Action", width: "min(10rem, 33vw)", cell: (row) => row.action },
  { key: "target", title: "Target", cell: (row) => visibleName(row.target) },
  {
    key: "outcome",
    title: "Outcome",
    width: "9rem",
    prio: 2,
    cell: (row) => html`<${Badge} tone=${/^(done|ok)/.test(row.outcome) ? "good" : "bad"}>${row.outcome}<//>`,
  },
  {
    key: "detail",
    title: "Details",
    width: "18%",
    prio: 3,
    cell: (row) => html`<span title=${detailOf(row)}>${detailOf(row)}</span>`,
  },
];

/** Return the filter that the address contains. */
const filterOf = ({ who = "", action = "", target = "", from = "", to = "" }) => ({ who, action, target, from, to });

const digits = (n, places = 2) => String(n).padStart(places, "0");

/** Times are UTC in the address, which may be shared, and local in their fields. A year may have five digits. */
const toLocal = (text) => {
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return "";
  const day = `${digits(at.getFullYear(), 4)}-${digits(at.getMonth() + 1)}-${digits(at.getDate())}`;
  return `${day}T${digits(at.getHours())}:${digits(at.getMinutes())}`;
};
const toUtc = (text) => (text ? new Date(text).toISOString() : "");

const Filters = () => html`
  <div class="filters many" role="search" aria-label="Filter the audit log">
    <div><span aria-hidden="true">Target</span><${Filter} name="target" label="Target" placeholder="part of a name" /></div>
    <${Field} name="who" label="User" placeholder="part of a name" />
    <${Field} name="action" label="Action" placeholder="purge, queue., …" />
    <${Field} name="from" label="From" type="datetime-local" read=${toLocal} write=${toUtc} />
    <${Field} name="to" label="To" type="datetime-local" read=${toLocal} write=${toUtc} />
  </div>
`;

export function Audit() {
  const filter = useDebounced(filterOf(route.value.query));
  const pages = usePages("audit", { ...filter, limit: 200 });
  const rows = pages.items;
  const isFiltered = Object.values(filter).some(Boolean);
  return html`
    <${Head} title="Audit log" actions=${html`<button disabled=${pages.isBusy} onClick=${pages.reload}>Refresh</button>`}>
      <p class="soft">All requested changes, including refused ones. Newest first.</p>
    <//>
    <${Filters} />
    <p class="soft" aria-live="polite">${pages.isLoading ? "" : `${count(rows.length)}${pages.hasMore ? " or more" : ""} ${rows.length === 1 ? "entry" : "entries"}`}</p>
    <${Loaded} resource=${pages}>
      ${() => html`<${Table} label="Audit log" columns=${COLUMNS} rows=${rows} keyOf=${(row) => `${row.at} ${row.action} ${row.target} ${row.outcome} ${JSON.stringify(row.detail)}`}
        empty=${isFiltered ? html`<${NoMatch} what="entry" view="audit" />` : html`<${Empty} title="No changes yet.">Changes that users request, here or by the API, are recorded.<//>`} />`}
    <//>
    <${LoadMore} pages=${pages} what="entries" />
  `;
}
