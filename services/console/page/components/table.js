// Tables of any length: only the visible rows are in the page, so that a thousand that change every two seconds cost no more than
// thirty. Sorting is kept in the address. Arrow keys move from row to row.

import { Fragment, html, names, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../html.js";
import { completesSequence } from "../keys.js";
import { detailsColumn, RowDetails } from "./rowdetails.js";
import { refine, route } from "../routes.js";
import { bytes, several } from "../formats.js";

const ROW = 33; // px, as in the style sheet
const UNWINDOWED = 60; // up to so many rows are all drawn
const OVERSCAN = 12; // rows above and below the visible ones
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

/** Return a column of octets. key: the field that has them. */
export const octets = (key, title) => ({
  ...{ key, title, isNumber: true, width: "6rem", prio: 2 },
  sort: (row) => row[key],
  cell: (row) => bytes(row[key]),
});

/**
 * columns: [{key, title, cell(row, tab) → text or elements, sort?(row) → value, isNumber?, width?, prio?: 1..4}]; the one with `isHead`
 * names its row. The higher prio, the wider the table has to be to show the column.
 * sort: the default order, 'key' or '-key'; rows keep their order without. more(row) → [[name, value]]: fields without a column, shown
 * when the row is expanded. One row at a time can be expanded.
 */
export function Table({ label, columns: given, rows, keyOf, sort = "", sortAs = "sort", empty, rowClass, more }) {
  const [opened, open] = useState(null); // a row's key
  const columns = [...given, ...detailsColumn(given, more, keyOf, opened, open)];
  const chosen = route.value.query[sortAs] ?? sort;
  const sorted = useMemo(() => inOrder(rows, columns, chosen), [rows, chosen]);
  const body = useRef(null);
  const [from, to] = useVisibleRange(body, sorted.length);
  const [active, focus] = useFocus(body, sorted.length);
  if (rows.length === 0 && empty) return empty;
  return html`<div class="fit">
    <table class="rows" aria-label=${label} aria-rowcount=${sorted.length + 1} onKeyDown=${(event) => onKeyDown(event, focus)} onMouseOver=${showCutText}>
      <colgroup>
        ${columns.map(({ key, width, prio, className }) => html`<col key=${key} class=${names({ [`prio${prio}`]: prio, [className]: className })} style=${{ width }} />`)}
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
            <${Row} row=${row} columns=${columns} index=${from + i} isActive=${from + i === active} className=${rowClass?.(row)} focus=${focus} />
            ${opened === keyOf(row) && html`<${RowDetails} row=${row} columns=${given} more=${more} />`}
          <//>
        `,
        )}
        ${to < sorted.length && html`<tr class="spacer" aria-hidden="true"><td style=${{ height: `${(sorted.length - to) * ROW}px` }} /></tr>`}
      </tbody>
    </table>
  </div>`;
}

const classOf = ({ isNumber, prio, className }) => names({ n: isNumber, [`prio${prio}`]: prio, [className]: className });

function Row({ row, columns, index, isActive, className, focus }) {
  const tab = isActive ? 0 : -1; // one stop of the Tab key for the table; arrows do the rest
  return html`
    <tr data-index=${index} aria-rowindex=${index + 2} class=${className} onFocusIn=${() => focus(index, false)}>
      ${columns.map((column) => {
        const content = column.cell(row, tab);
        return column.isHead
          ? html`<th key=${column.key} scope="row" class=${classOf(column)}>${content}</th>`
          : html`<td key=${column.key} class=${classOf(column)}>${content}</td>`;
      })}
    </tr>
  `;
}

/** Give a cell whose text is cut off a tooltip with the whole text. */
function showCutText({ target }) {
  const cell = target.closest("tbody th, tbody td");
  if (cell) cell.title = cell.scrollWidth > cell.clientWidth ? cell.textContent.trim() : "";
}

function Head({ column, chosen, sortAs }) {
  const { key, title, sort, isNumber, hint } = column;
  const className = classOf(column);
  if (!sort) return html`<th scope="col" class=${className} title=${hint}>${title}</th>`;
  const isUp = chosen === key;
  const isDown = chosen === `-${key}`;
  // numbers sort from the largest, names from the first
  const next = isNumber ? (isDown ? key : `-${key}`) : isUp ? `-${key}` : key;
  return html`
    <th scope="col" class=${className} aria-sort=${isUp ? "ascending" : isDown ? "descending" : "none"}>
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

const collator = new Intl.Collator("en", { numeric: true });
const compared = (a, b) => (typeof a === "string" ? collator.compare(a, b ?? "") : (a ?? -1) - (b ?? -1));

/** Return the visible rows as [first, last + 1]. */
function useVisibleRange(body, length) {
  const [range, setRange] = useState([0, UNWINDOWED]);
  useLayoutEffect(() => {
    if (length <= UNWINDOWED) return undefined;
    const measure = () => {
      const top = body.current?.getBoundingClientRect().top ?? 0;
      const first = Math.max(Math.floor(-top / ROW) - OVERSCAN, 0);
      const last = Math.ceil((innerHeight - top) / ROW) + OVERSCAN;
      setRange((was) => (was[0] === first && was[1] === last ? was : [first, last]));
    };
    measure();
    addEventListener("scroll", measure, { passive: true });
    addEventListener("resize", measure);
    return () => {
      removeEventListener("scroll", measure);
      removeEventListener("resize", measure);
    };
  }, [length > UNWINDOWED]);
  return length <= UNWINDOWED ? [0, length] : [Math.min(range[0], length), Math.min(range[1], length)];
}

/** Return [the row that has the keyboard focus, a function that moves it]. */
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
  useEffect(reach); // for a row that was not drawn before
  const focus = (index, isMoving = true) => {
    const next = Math.min(Math.max(index, 0), length - 1);
    setActive(next);
    if (isMoving) {
      wanted.current = next;
      show(body.current, next);
      reach(); // the next key may be pressed before the next draw
    }
  };
  return [Math.min(active, Math.max(length - 1, 0)), focus];
}

/** Scroll so that the row is visible below the sticky head. */
function show(body, index) {
  const top = body.getBoundingClientRect().top + index * ROW;
  const head = 90;
  if (top < head) scrollBy(0, top - head);
  else if (top + ROW > innerHeight - 20) scrollBy(0, top + ROW - innerHeight + 20);
}

/** Enter follows the row's link and Space toggles its check box, no matter which of the two has the focus. */
function activate({ key, target }) {
  if (target.matches("button")) return false;
  const row = target.closest("tbody tr");
  const isCheck = target.matches("input[type=checkbox]");
  const wanted = key === "Enter" && isCheck ? "a" : key === " " && !isCheck ? "input[type=checkbox]" : null;
  const found = wanted && row?.querySelector(wanted);
  found?.click();
  return Boolean(found);
}

function onKeyDown(event, focus) {
  if (activate(event)) {
    event.preventDefault();
    return;
  }
  const step = STEPS[event.key];
  const isTyping = event.target.matches("input:not([type=checkbox]), textarea, select");
  if (step === undefined || isTyping || completesSequence(event) || event.ctrlKey || event.metaKey || event.altKey) return;
  const row = event.target.closest("tbody tr[data-index]");
  if (!row) return;
  event.preventDefault();
  focus(Number(row.dataset.index) + step);
}

/** The number of items, and how many of them the filter shows. */
export const Tally = ({ shown, all, one, many }) => html`
  <p class="soft tally" aria-live="polite">${shown === all ? several(all, one, many) : `${shown} of ${several(all, one, many)}`}</p>
`;
