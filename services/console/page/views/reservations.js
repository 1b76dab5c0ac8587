// Queues that somebody has to himself for a while.

import { html } from "../html.js";
import { useAsked } from "../asking.js";
import { age } from "../formats.js";
import { Head } from "../parts/fields.js";
import { Asked, Empty } from "../parts/problem.js";
import { Table } from "../parts/table.js";
import { href } from "../routes.js";

const EVERY_MS = 3000;
const COLUMNS = [
  {
    key: "queue",
    title: "Queue",
    isHead: true,
    sort: (row) => row.queue,
    cell: ({ queue }, tab) => html`<a href=${href(["queues", queue])} tabindex=${tab}>${queue}</a>`,
  },
  {
    key: "by",
    title: "Reserved by",
    width: "45%",
    sort: (row) => row.reservedBy,
    cell: ({ reservedBy }) => reservedBy,
  },
  {
    key: "for",
    title: "For another",
    isNumber: true,
    width: "7rem",
    sort: (row) => row.reservedForMs,
    cell: ({ reservedForMs }) => age(reservedForMs),
  },
];

export function Reservations() {
  const asked = useAsked("reservations", { limit: 1000 }, EVERY_MS);
  return html`
    <${Head} title="Reservations"><p class="soft">Only the holder may put messages in. Who does not renew in time loses it by itself.</p><//>
    <${Asked} asked=${asked}>
      ${({ items }) => html`<${Table} label="Reservations" columns=${COLUMNS} rows=${items} keyOf=${({ queue }) => queue} sort="queue" empty=${html`<${Empty} title="No queue is reserved." />`} />`}
    <//>
  `;
}
