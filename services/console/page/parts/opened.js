// What of a row has no room in its table, or no column at all: a button at its end opens it below the row. The style sheet
// shows of both only what is not seen otherwise.

import { html, names } from "../html.js";

/** The column of buttons, if there is anything to open; it is seen where one of `columns` is not. */
export function opener(columns, more, keyOf, opened, open) {
  const first = Math.max(...columns.map(({ prio }) => prio ?? 0)); // goes first
  if (!more && first < 2) return [];
  const cell = (row, tab) => {
    const isOpen = opened === keyOf(row);
    const toggle = () => open(isOpen ? null : keyOf(row));
    return html`<button class="small quiet" tabindex=${tab} aria-label="More of this row" aria-expanded=${isOpen ? "true" : "false"} onClick=${toggle}>${isOpen ? "▾" : "▸"}</button>`;
  };
  const look = more ? "opener" : `opener opens${first}`;
  return [{ key: "opener", title: html`<span role="img" aria-label="More"></span>`, width: "2.2rem", look, cell }];
}

export function Opened({ row, columns, more }) {
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
