// The list of queues.

import { html, useMemo } from "../html.js";
import { age, bytes, rate } from "../formats.js";
import { Badge, Choice, Figure, Filter, Head, useOpen } from "../components/fields.js";
import { NewQueue } from "../components/newqueue.js";
import { Empty, NoMatch } from "../components/problem.js";
import { Table, Tally } from "../components/table.js";
import { href, route } from "../routes.js";
import { may } from "../session.js";
import { overview, queueList } from "../state.js";

const ONLY = {
  all: () => true,
  dead: (queue) => queue.dead > 0,
  stuck: (queue) => queue.nobodyTakes,
  paused: (queue) => queue.paused,
  remote: (queue) => queue.remote,
};
const CHOICES = [
  ["all", "All"],
  ["dead", "With dead letters"],
  ["stuck", "No consumers"],
  ["paused", "Paused"],
  ["remote", "Forwarded"],
];

const number = (key, title, value, { format, width = "min(5.5rem, 16vw)", prio, hint } = {}) => ({
  ...{ key, title, isNumber: true, width, prio, hint },
  sort: (row) => value(row) ?? -1,
  cell: (row) => html`<${Figure} value=${value(row)} format=${format} />`,
});

const COLUMNS = [
  {
    key: "name",
    title: "Queue",
    isHead: true,
    sort: (row) => row.name,
    cell: (row, tab) => html`<${Name} row=${row} tab=${tab} />`,
  },
  number("ready", "Ready", (row) => row.ready),
  number("inFlight", "In flight", (row) => row.inFlight, { prio: 2, hint: "delivered, not yet acknowledged" }),
  { ...number("dead", "Dead", (row) => row.dead, { hint: "dead letters" }), cell: (row) => html`<${Dead} row=${row} />` },
  number("age", "Oldest", (row) => (row.ready || row.inFlight ? row.oldestAgeMs : null), {
    format: age,
    width: "7rem",
    prio: 2,
    hint: "age of the oldest message",
  }),
  number("in", "In/s", (row) => row.rates.in, { format: rate, width: "min(5rem, 14vw)" }),
  number("out", "Out/s", (row) => row.rates.out, { format: rate, width: "5rem", prio: 2 }),
  number("bytes", "Size", (row) => row.bytes, { format: bytes, prio: 3 }),
  {
    key: "owner",
    title: "Owner",
    width: "8rem",
    prio: 3,
    sort: (row) => row.owner,
    cell: (row) => row.owner,
  },
];

function Name({ row, tab }) {
  return html`
    <a href=${href(["queues", row.name])} tabindex=${tab} title=${row.name}>${row.name}</a>
    ${row.paused && html` <${Badge} tone="warn">Paused<//>`} ${row.remote && html` <${Badge} title="forwarded over this protocol">${row.remote}<//>`}
    ${row.condition && html` <${Badge} tone="bad" title=${row.condition}>Issue<//>`}
  `;
}

const Dead = ({ row }) =>
  row.dead
    ? html`<a class="bad" href=${href(["queues", row.name, "dead"])} tabindex="-1"><${Figure} value=${row.dead} /></a>`
    : html`<${Figure} value=${0} />`;

export function Queues() {
  const { filter = "", only = "all" } = route.value.query;
  const all = queueList.value;
  const rows = useMemo(() => {
    const wanted = filter.toLowerCase();
    return all.filter((row) => row.name.toLowerCase().includes(wanted) && (ONLY[only] ?? ONLY.all)(row));
  }, [all, filter, only]);
  const [isNew, open, close] = useOpen();
  return html`
    <${Head} title="Queues" actions=${may("admin") && html`<button onClick=${() => open(true)}>New queue…</button>`} />
    <div class="tools">
      <${Filter} label="Filter by name" />
      <${Choice} name="only" label="Show" choices=${CHOICES} />
      <${Tally} shown=${rows.length} all=${all.length} one="queue" />
    </div>
    ${
      overview.value
        ? html`<${Table} label="Queues" columns=${COLUMNS} rows=${rows} keyOf=${(row) => row.name} sort="name" empty=${html`<${Nothing} isFiltered=${all.length > 0} />`} />`
        : html`<p class="soft loading" aria-busy="true">Loading…</p>`
    }
    ${isNew && html`<${NewQueue} onClose=${close} />`}
  `;
}

const Nothing = ({ isFiltered }) =>
  isFiltered
    ? html`<${NoMatch} what="queue" view="queues" />`
    : html`<${Empty} title="There are no queues yet.">Declare some with <code>penstock queue apply -f queues.yaml</code>${may("admin") && ", or create one here"}.<//>`;
