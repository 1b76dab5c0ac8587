// The dead letters of one queue: filtered, selected, brought back or removed.

import { html, useEffect, useMemo, useState } from "../html.js";
import { at } from "../api.js";
import { useFollowing, usePages, useSettled } from "../asking.js";
import { decode, preview } from "../bodies.js";
import { bytes, count, several } from "../formats.js";
import { Ago, Field, Filter, More, useOpen } from "../parts/fields.js";
import { Purge } from "../parts/purge.js";
import { Redrive } from "../parts/redrive.js";
import { Empty, ProblemBox } from "../parts/problem.js";
import { Table } from "../parts/table.js";
import { href, route } from "../routes.js";
import { may } from "../session.js";
import { jobs } from "../state.js";

const LIMIT = 200;
const PREVIEW = 160; // octets of each body

/** What of the address is a filter: {reason, origin, olderThan, body}. */
const filterOf = ({ reason = "", origin = "", olderThan = "", body = "" }) => ({
  reason,
  origin,
  olderThan,
  body,
});

export function DeadLetters({ queue }) {
  const filter = useSettled(filterOf(route.value.query));
  const pages = usePages(at`queues/${queue.name}/dead`, { ...filter, limit: LIMIT, octets: PREVIEW });
  useFollowing(signOf(queue), pages);
  const [selected, setSelected] = useSelected(filter, pages);
  const [open, setOpen, close] = useOpen(); // {Part, ids}: what was selected as it opened
  const done = () => {
    setSelected(new Set());
    pages.again();
  };
  const act = (Part) => () => setOpen({ Part, ids: [...selected] });
  return html`
    <section>
      <${Filters} />
      <div class="tools">
        <p aria-live="polite" class="soft">${selected.size ? `${several(selected.size, "letter")} selected` : shownOf(pages, queue, filter)}</p>
        <button disabled=${pages.isBusy} onClick=${pages.again}>Look again</button>
        ${
          may("operate") &&
          html`<span class="right">
          <button class="primary" disabled=${!pages.items.length} onClick=${act(Redrive)}>Redrive…</button>${" "}
          <button class="danger" disabled=${!pages.items.length} onClick=${act(Purge)}>Purge…</button>
        </span>`
        }
      </div>
      <${ProblemBox} problem=${pages.problem} again=${pages.again} />
      ${pages.isLoading && html`<p class="soft loading" aria-busy="true">Looking…</p>`}
      ${!pages.isLoading && !pages.problem && html`<${Letters} queue=${queue} pages=${pages} selected=${selected} select=${setSelected} />`}
      <${More} pages=${pages} what="letters" />
      ${open && html`<${open.Part} queue=${queue} filter=${filter} ids=${open.ids} onClose=${close} onDone=${done} />`}
    </section>
  `;
}

/** Becomes another one when letters come or go: their number, and how jobs that move them stand. */
const signOf = ({ name, dead }) =>
  [
    dead,
    ...(jobs.value ?? [])
      .filter(({ queue, target }) => queue === name || target === name)
      .map(({ id, state }) => `${id} ${state}`),
  ].join();

/** Ids that are selected, of those that are still there; none after another filter was set. */
function useSelected(filter, { items }) {
  const [selected, setSelected] = useState(new Set());
  useEffect(() => setSelected(new Set()), [JSON.stringify(filter)]);
  const left = useMemo(() => {
    const there = new Set(items.map(({ id }) => id));
    return new Set([...selected].filter((id) => there.has(id)));
  }, [selected, items]);
  return [left, setSelected];
}

const isFiltered = (filter) => Object.values(filter).some(Boolean);

function shownOf(pages, queue, filter) {
  if (pages.isLoading) return "";
  const n = count(pages.items.length);
  if (isFiltered(filter)) return `${n}${pages.hasMore ? " or more" : ""} match`;
  return pages.hasMore
    ? `${n} of ${several(queue.dead, "letter")}, the oldest first`
    : several(pages.items.length, "letter");
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
    <${Field} name="origin" label="Origin has" placeholder="tmq 10.0.0.7" />
    <${Field} name="olderThan" label="Dead for at least" placeholder="30m, 2h, 1d" />
    <datalist id="reasons">${REASONS.map((reason) => html`<option value=${reason} />`)}</datalist>
  </div>
`;

function Letters({ queue, pages, selected, select }) {
  const { items } = pages;
  if (items.length === 0) {
    return isFiltered(filterOf(route.value.query))
      ? html`<${Empty} title="No dead letter matches."><a href=${href(["queues", queue.name, "dead"])}>Show all</a><//>`
      : html`<${Empty} title="Nothing died here, or all of it has been dealt with." />`;
  }
  const toggle = (id) => {
    const next = new Set(selected);
    if (!next.delete(id)) next.add(id);
    select(next);
  };
  const all = items.length > 0 && items.every(({ id }) => selected.has(id));
  const toggleAll = () => select(all ? new Set() : new Set(items.map(({ id }) => id)));
  const said = (key) => items.some((item) => item[key]);
  const columns = [
    ...(may("operate") ? [checkColumn(selected, toggle, all, toggleAll)] : []),
    ...letterColumns(queue.name).filter(({ key, isRare }) => !isRare || said(key)),
  ];
  return html`
    <${Table} label="Dead letters" columns=${columns} rows=${items} keyOf=${({ id }) => id}
      rowClass=${({ id }) => (selected.has(id) ? "selected" : undefined)} />
  `;
}

const checkColumn = (selected, toggle, all, toggleAll) => ({
  key: "chosen",
  width: "2.2rem",
  look: "check",
  title: html`<input type="checkbox" aria-label="Select all that are shown" checked=${all} onChange=${toggleAll} />`,
  cell: ({ id }, tab) =>
    html`<input type="checkbox" tabindex=${tab} aria-label=${`Select ${id}`} checked=${selected.has(id)} onChange=${() => toggle(id)} />`,
});

/** isRare: is left out if no letter has it. */
const letterColumns = (name) => [
  {
    key: "died",
    title: "Died",
    width: "min(7.5rem, 23vw)",
    isHead: true,
    cell: (row, tab) =>
      html`<a href=${href(["queues", name, "dead", row.id], route.value.query)} tabindex=${tab}><${Ago} at=${row.diedAt} /></a>`,
  },
  { key: "reason", title: "Reason", width: "min(9rem, 26vw)", cell: (row) => row.reason },
  {
    key: "body",
    title: "Body",
    look: "code",
    cell: (row) => html`<${Beginning} base64=${row.bodyBase64} />`,
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
    hint: "deliveries that failed",
    cell: (row) => count(row.failed),
  },
  {
    key: "redriven",
    title: "Again",
    isNumber: true,
    width: "4rem",
    prio: 3,
    isRare: true,
    hint: "how often it had been brought back before",
    cell: (row) => count(row.redriven),
  },
  { key: "bytes", title: "Size", isNumber: true, width: "5.5rem", prio: 2, cell: (row) => bytes(row.bytes) },
];

const Beginning = ({ base64 }) => useMemo(() => preview(decode(base64)), [base64]);
