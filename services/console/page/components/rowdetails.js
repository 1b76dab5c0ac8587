// Details of a table's row: the columns that do not fit, and fields without a column. A button at the end of the row opens them
// below it; the style sheet hides the button and the fields whose columns are visible.

import { html, names } from "../html.js";

/** Return the column of buttons as a list, empty if there is nothing to open. */
export function detailsColumn(columns, more, keyOf, opened, open) {
  const first = Math.max(...columns.map(({ prio }) => prio ?? 0)); // the first column to be hidden
  if (!more && first < 2) return [];
  const cell = (row, tab) => {
    const isOpen = opened === keyOf(row);
    const toggle = () => open(isOpen ? null : keyOf(row));
    return html`<button class="small quiet" tabindex=${tab} aria-label="Details of this row" aria-expanded=${isOpen ? "true" : "false"} onClick=${toggle}>${isOpen ? "▾" : "▸"}</button>`;
  };
  const className = more ? "opener" : `opener opens${first}`;
  return [{ key: "opener", title: html`<span role="img" aria-label="Details"></span>`, width: "2.2rem", className, cell }];
}

export function RowDetails({ row, columns, more }) {
  const hidden = columns.filter(({ prio }) => prio >= 2).map((column) => [column.title, column.cell(row, 0), column.prio]);
  const facts = [...hidden, ...(more?.(row) ?? [])].filter(([, value]) => value != null && value !== "" && value !== false);
  return html`
    <tr class="opened">
      <td>
        <dl class="facts lines">${facts.map(([name, value, prio]) => html`<div key=${name} class=${names({ [`only${prio}`]: prio })}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
      </td>
    </tr>
  `;
}
