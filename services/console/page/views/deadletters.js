// Dead letters of a queue: filter, select, redrive and purge them.

import { html, useEffect, useMemo, useState } from "../html.js";
import { at } from "../api.js";
import { useAutoRefresh, usePages, useDebounced } from "../fetching.js";
import { decode, preview } from "../bodies.js";
import { bytes, count, several } from "../formats.js";
import { Ago, Field, Filter, LoadMore, useOpen } from "../components/fields.js";
import { Purge } from "../components/purge.js";
import { Redrive } from "../components/redrive.js";
import { Empty, Loaded } from "../components/problem.js";
import { Table } from "../components/table.js";
import { href, route } from "../routes.js";
import { may } from "../session.js";
import { jobs } from "../state.js";

const LIMIT = 200;
const PREVIEW = 160; // octets of each body

/** Return the filter that the address contains: {reason, origin, olderThan, body}. */
const filterOf = ({ reason = "", origin = "", olderThan = "", body = "" }) => ({
  reason,
  origin,
  olderThan,
  body,
});

export function DeadLetters({ queue }) {
  const filter = useDebounced(filterOf(route.value.query));
  const pages = usePages(at`queues/${queue.name}/dead`, { ...filter, limit: LIMIT, octets: PREVIEW });
  useAutoRefresh(versionOf(queue), pages);
  const [selected, setSelected] = useSelectedIds(filter, pages);
  const [open, setOpen, close] = useOpen(); // {Dialog, ids}: what was selected as it opened
  const done = () => {
    setSelected(new Set());
    pages.reload();
  };
  const act = (Dialog) => () => setOpen({ Dialog, ids: [...selected] });
  return html`
    <section>
      <${Filters} />
      <div class="tools">
        <p aria-live="polite" class="soft">${selected.size ? `${several(selected.size, "dead letter")} selected` : shownOf(pages, queue, filter)}</p>
        <button disabled=${pages.isBusy} onClick=${pages.reload}>Refresh</button>
        ${
          may("operate") &&
          html`<span class="right">
          <button class="primary" disabled=${!pages.items.length} onClick=${act(Redrive)}>Redrive…</button>${" "}
          <button class="danger" disabled=${!pages.items.length} onClick=${act(Purge)}>Purge…</button>
        </span>`
        }
      </div>
      <${Loaded} resource=${pages}>${() => html`<${Letters} queue=${queue} pages=${pages} selected=${selected} select=${setSelected} />`}<//>
      <${LoadMore} pages=${pages} what="dead letters" />
      ${open && html`<${open.Dialog} queue=${queue} filter=${filter} ids=${open.ids} onClose=${close} onDone=${done} />`}
    </section>
  `;
}

/** Return a string that changes when dead letters come or go: their number, and the states of jobs that move them. */
const versionOf = ({ name, dead }) =>
  [
    dead,
    ...(jobs.value ?? [])
      .filter(({ queue, target }) => queue === name || target === name)
      .map(({ id, state }) => `${id} ${state}`),
  ].join();

/** Return the selected ids that are still in the list, and their setter; a new filter clears the selection. */
function useSelectedIds(filter, { items }) {
  const [selected, setSelected] = useState(new Set());
  useEffect(() => setSelected(new Set()), [JSON.stringify(filter)]);
  const left = useMemo(() => {
    const listed = new Set(items.map(({ id }) => id));
    return new Set([...selected].filter((id) => listed.has(id)));
  }, [selected, items]);
  return [left, setSelected];
}

const isFiltered = (filter) => Object.values(filter).some(Boolean);

function shownOf(pages, queue, filter) {
  if (pages.isLoading || pages.problem) return "";
  const n = count(pages.items.length);
  if (isFiltered(filter)) return pages.hasMore ? `${n} or more matches` : several(pages.items.length, "match", "matches");
  return pages.hasMore
    ? `${n} of ${several(queue.dead, "dead letter")}, oldest first`
    : several(pages.items.length, "dead letter");
}

const REASONS = [
  "expired",
  "max_deliveries",
  "rejected_full",
  "refused",
  "queue_full",
  "queue_paused",
  "queue_reserved",
  "no_receiver",
  "too_large_for_peers",
  "too_large_for_ring",
  "too_large_for_queue",
  "unconfirmed",
  "held",
  "injured",
  "partially_received",
  "zombie",
  "unencodable",
  "fault",
];

const Filters = () => html`
  <div class="filters" role="search" aria-label="Filter dead letters">
    <div><span aria-hidden="true">Body matches</span><${Filter} name="body" label="Body matches" placeholder="regular expression" /></div>
    <${Field} name="reason" label="Reason" placeholder="any" list="reasons" />
    <${Field} name="origin" label="Origin contains" placeholder="tmq 10.0.0.7" />
    <${Field} name="olderThan" label="Died at least … ago" placeholder="30m, 2h, 1d" />
    <datalist id="reasons">${REASONS.map((reason) => html`<option value=${reason} />`)}</datalist>
  </div>
`;

function Letters({ queue, pages, selected, select }) {
  const { items } = pages;
  if (items.length === 0) {
    return isFiltered(filterOf(route.value.query))
      ? html`<${Empty} title="No dead letter matches."><a href=${href(["queues", queue.name, "dead"])}>Show all</a><//>`
      : html`<${Empty} title="No dead letters." />`;
  }
  const toggle = (id) => {
    const next = new Set(selected);
    if (!next.delete(id)) next.add(id);
    select(next);
  };
  const all = items.length > 0 && items.every(({ id }) => selected.has(id));
  const toggleAll = () => select(all ? new Set() : new Set(items.map(({ id }) => id)));
  const isSet = (key) => items.some((item) => item[key]);
  const columns = [
    ...(may("operate") ? [checkColumn(selected, toggle, all, toggleAll)] : []),
    ...letterColumns(queue.name).filter(({ key, isRare }) => !isRare || isSet(key)),
  ];
  return html`
    <${Table} label="Dead letters" columns=${columns} rows=${items} keyOf=${({ id }) => id}
      rowClass=${({ id }) => (selected.has(id) ? "selected" : undefined)} />
  `;
}

const checkColumn = (selected, toggle, all, toggleAll) => ({
  key: "chosen",
  width: "2.2rem",
  className: "check",
  title: html`<input type="checkbox" aria-label="Select all shown" checked=${all} onChange=${toggleAll} />`,
  cell: ({ id }, tab) =>
    html`<input type="checkbox" tabindex=${tab} aria-label=${`Select ${id}`} checked=${selected.has(id)} onChange=${() => toggle(id)} />`,
});

/** isRare: left out if no dead letter has the field. */
const letterColumns = (name) => [
  {
    key: "died",
    title: "Died",
    width: "min(7.5rem, 30vw)",
    isHead: true,
    cell: (row, tab) =>
      html`<a href=${href(["queues", name, "dead", row.id], route.value.query)} tabindex=${tab}><${Ago} at=${row.diedAt} /></a>`,
  },
  { key: "reason", title: "Reason", width: "min(9rem, 26vw)", cell: (row) => row.reason },
  {
    key: "body",
    title: "Body",
    className: "code",
    cell: (row) => html`<${BodyPreview} base64=${row.bodyBase64} />`,
  },
  { key: "error", title: "Error", width: "30%", prio: 2, isRare: true, cell: (row) => row.error },
  { key: "origin", title: "Origin", width: "16%", prio: 3, cell: (row) => row.origin },
  {
    key: "failed",
    title: "Failed",
    isNumber: true,
    width: "4rem",
    prio: 2,
    isRare: true,
    hint: "failed deliveries",
    cell: (row) => count(row.failed),
  },
  {
    key: "redriven",
    title: "Redriven",
    isNumber: true,
    width: "5rem",
    prio: 3,
    isRare: true,
    hint: "how often it was redriven before",
    cell: (row) => count(row.redriven),
  },
  { key: "bytes", title: "Size", isNumber: true, width: "5.5rem", prio: 2, cell: (row) => bytes(row.bytes) },
];

const BodyPreview = ({ base64 }) => useMemo(() => preview(decode(base64)), [base64]);
