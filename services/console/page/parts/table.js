// Tables of any length: only the rows that can be seen are in the page, so a thousand that change every two seconds
// cost no more than thirty. Sorting is kept in the address. Arrows move from row to row.

import { Fragment, html, names, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../html.js";
import { leads } from "../keys.js";
import { opener, Opened } from "./opened.js";
import { refine, route } from "../routes.js";
import { bytes, several } from "../formats.js";

const ROW = 33; // px, as the style sheet has it
const ALL = 60; // so many rows are simply drawn
const SPARE = 12; // rows above and below what is seen
const STEPS = {
  ArrowDown: 1,
  j: 1,
  ArrowUp: -1,
  k: -1,
  PageDown: 15,
  PageUp: -15,
  Home: -Infinity,
  End: Infinity,
};

/** A column of octets, by the field that has them. */
export const octets = (key, title) => ({
  ...{ key, title, isNumber: true, width: "6rem", prio: 2 },
  sort: (row) => row[key],
  cell: (row) => bytes(row[key]),
});

/**
 * columns: [{key, title, cell(row, tab) → text or elements, sort?(row) → value, isNumber?, width?, prio?: 1..4}]; the
 * first one with `isHead` names its row. the higher prio, the wider
 * a table has to be to show it.
 * sort: 'key' or '-key', what the address does not say. Rows are in their own order without. more(row) → [[name, value]]: what
 * there is no column for. A row with more than is seen can be opened, one at a time.
 */
export function Table({ label, columns: given, rows, keyOf, sort = "", sortAs = "sort", empty, rowClass, more }) {
  const [opened, open] = useState(null); // a row's key
  const columns = [...given, ...opener(given, more, keyOf, opened, open)];
  const chosen = route.value.query[sortAs] ?? sort;
  const sorted = useMemo(() => inOrder(rows, columns, chosen), [rows, chosen]);
  const body = useRef(null);
  const [from, to] = useSeen(body, sorted.length);
  const [active, focus] = useFocus(body, sorted.length);
  if (rows.length === 0 && empty) return empty;
  return html`<div class="fit">
    <table class="rows" aria-label=${label} aria-rowcount=${sorted.length + 1} onKeyDown=${(event) => moved(event, focus)}>
      <colgroup>
        ${columns.map(({ key, width, prio, look }) => html`<col key=${key} class=${names({ [`prio${prio}`]: prio, [look]: look })} style=${{ width }} />`)}
      </colgroup>
      <thead>
        <tr aria-rowindex="1">
          ${columns.map((column) => html`<${Head} key=${column.key} column=${column} chosen=${chosen} sortAs=${sortAs} />`)}
        </tr>
      </thead>
      <tbody ref=${body}>
        ${from > 0 && html`<tr class="spacer" aria-hidden="true"><td style=${{ height: `${from * ROW}px` }} /></tr>`}
        ${sorted.slice(from, to).map(
          (row, i) => html`
          <${Fragment} key=${keyOf(row)}>
            <${Row} row=${row} columns=${columns} index=${from + i} isActive=${from + i === active} look=${rowClass?.(row)} focus=${focus} />
            ${opened === keyOf(row) && html`<${Opened} row=${row} columns=${given} more=${more} />`}
          <//>
        `,
        )}
        ${to < sorted.length && html`<tr class="spacer" aria-hidden="true"><td style=${{ height: `${(sorted.length - to) * ROW}px` }} /></tr>`}
      </tbody>
    </table>
  </div>`;
}

function Row({ row, columns, index, isActive, look: rowLook, focus }) {
  const tab = isActive ? 0 : -1; // one stop of the Tab key for the table; arrows do the rest
  return html`
    <tr data-index=${index} aria-rowindex=${index + 2} class=${rowLook} onFocusIn=${() => focus(index, false)}>
      ${columns.map((column) => {
        const look = names({
          n: column.isNumber,
          [`prio${column.prio}`]: column.prio,
          [column.look]: column.look,
        });
        const told = column.cell(row, tab);
        return column.isHead
          ? html`<th key=${column.key} scope="row" class=${look}>${told}</th>`
          : html`<td key=${column.key} class=${look}>${told}</td>`;
      })}
    </tr>
  `;
}

function Head({ column, chosen, sortAs }) {
  const { key, title, sort, isNumber, prio, hint, look: own } = column;
  const look = names({ n: isNumber, [`prio${prio}`]: prio, [own]: own });
  if (!sort) return html`<th scope="col" class=${look} title=${hint}>${title}</th>`;
  const isUp = chosen === key;
  const isDown = chosen === `-${key}`;
  // numbers are asked for by their largest, names by their first
  const next = isNumber ? (isDown ? key : `-${key}`) : isUp ? `-${key}` : key;
  return html`
    <th scope="col" class=${look} aria-sort=${isUp ? "ascending" : isDown ? "descending" : "none"}>
      <button class="sort" title=${hint} onClick=${() => refine({ [sortAs]: next })}>${title}<i aria-hidden="true">${isUp ? "↑" : isDown ? "↓" : ""}</i></button>
    </th>
  `;
}

function inOrder(rows, columns, chosen) {
  const column = columns.find(({ key, sort }) => sort && key === chosen.replace(/^-/, ""));
  if (!column) return rows;
  const way = chosen.startsWith("-") ? -1 : 1;
  const keyed = rows.map((row) => [column.sort(row), row]);
  return keyed.sort(([a], [b]) => way * compared(a, b)).map(([, row]) => row);
}

const words = new Intl.Collator("en", { numeric: true });
const compared = (a, b) => (typeof a === "string" ? words.compare(a, b ?? "") : (a ?? -1) - (b ?? -1));

/** [first, behind the last] of the rows that are seen. */
function useSeen(body, length) {
  const [range, setRange] = useState([0, ALL]);
  useLayoutEffect(() => {
    if (length <= ALL) return undefined;
    const look = () => {
      const top = body.current?.getBoundingClientRect().top ?? 0;
      const first = Math.max(Math.floor(-top / ROW) - SPARE, 0);
      const last = Math.ceil((innerHeight - top) / ROW) + SPARE;
      setRange((was) => (was[0] === first && was[1] === last ? was : [first, last]));
    };
    look();
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => {
      removeEventListener("scroll", look);
      removeEventListener("resize", look);
    };
  }, [length > ALL]);
  return length <= ALL ? [0, length] : [Math.min(range[0], length), Math.min(range[1], length)];
}

/** Which row the keyboard is at, and how to bring it to another. */
function useFocus(body, length) {
  const [active, setActive] = useState(0);
  const wanted = useRef(null);
  const reach = () => {
    if (wanted.current === null) return;
    const row = body.current?.querySelector(`tr[data-index="${wanted.current}"]`);
    const target = row?.querySelector("a") ?? row?.querySelector("button, input");
    if (!target) return;
    wanted.current = null;
    target.focus({ preventScroll: true });
  };
  useEffect(reach); // of a row that was not drawn before
  const focus = (index, isMoving = true) => {
    const next = Math.min(Math.max(index, 0), length - 1);
    setActive(next);
    if (isMoving) {
      wanted.current = next;
      show(body.current, next);
      reach(); // the next key may be there before anything is drawn
    }
  };
  return [Math.min(active, Math.max(length - 1, 0)), focus];
}

/** Scrolls so that the row is seen below the sticky head. */
function show(body, index) {
  const top = body.getBoundingClientRect().top + index * ROW;
  const head = 90;
  if (top < head) scrollBy(0, top - head);
  else if (top + ROW > innerHeight - 20) scrollBy(0, top + ROW - innerHeight + 20);
}

/** Enter opens the row and Space selects it, whichever of the two the keyboard is at. */
function acted({ key, target }) {
  if (target.matches("button")) return false;
  const row = target.closest("tbody tr");
  const isCheck = target.matches("input[type=checkbox]");
  const wanted = key === "Enter" && isCheck ? "a" : key === " " && !isCheck ? "input[type=checkbox]" : null;
  const found = wanted && row?.querySelector(wanted);
  found?.click();
  return Boolean(found);
}

function moved(event, focus) {
  if (acted(event)) {
    event.preventDefault();
    return;
  }
  const step = STEPS[event.key];
  const isTyping = event.target.matches("input:not([type=checkbox]), textarea, select");
  if (step === undefined || isTyping || leads(event) || event.ctrlKey || event.metaKey || event.altKey) return;
  const row = event.target.closest("tbody tr[data-index]");
  if (!row) return;
  event.preventDefault();
  focus(Number(row.dataset.index) + step);
}

/** How many there are, and how many of them are shown. */
export const Tally = ({ shown, all, one, many }) => html`
  <p class="soft tally" aria-live="polite">${shown === all ? several(all, one, many) : `${shown} of ${several(all, one, many)}`}</p>
`;
