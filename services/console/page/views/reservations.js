// Queues that a client has reserved.

import { html } from "../html.js";
import { useResource } from "../fetching.js";
import { age } from "../formats.js";
import { Head } from "../components/fields.js";
import { Loaded, Empty } from "../components/problem.js";
import { Table } from "../components/table.js";
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
    prio: 2,
    sort: (row) => row.reservedBy,
    cell: ({ reservedBy }) => reservedBy,
  },
  {
    key: "for",
    title: "Expires in",
    isNumber: true,
    width: "7rem",
    sort: (row) => row.reservedForMs,
    cell: ({ reservedForMs }) => age(reservedForMs),
  },
];

export function Reservations() {
  const resource = useResource("reservations", { limit: 1000 }, EVERY_MS);
  return html`
    <${Head} title="Reservations"><p class="soft">Only the holder of a reservation can publish to the queue. It expires unless renewed.</p><//>
    <${Loaded} resource=${resource}>
      ${({ items }) => html`<${Table} label="Reservations" columns=${COLUMNS} rows=${items} keyOf=${({ queue }) => queue} sort="queue" empty=${html`<${Empty} title="No queue is reserved.">Queues are listed here while a sender by RQP/MCA has reserved them.<//>`} />`}
    <//>
  `;
}
