// Who is connected, over what, since when; and the end of a connection.

import { html } from "../html.js";
import { at, change } from "../api.js";
import { usePages } from "../asking.js";
import { age, since } from "../formats.js";
import { Choice, Facts, Filter, Head, More, Silent, useOpen } from "../parts/fields.js";
import { Confirm } from "../parts/dialog.js";
import { say } from "../parts/notices.js";
import { Empty, ProblemBox } from "../parts/problem.js";
import { octets, Table, Tally } from "../parts/table.js";
import { route } from "../routes.js";
import { may } from "../session.js";
import { edges } from "../state.js";

const LIMIT = 1000;

const CERTIFICATE = {
  key: "certificate",
  title: "Certificate",
  width: "12rem",
  prio: 3,
  sort: (row) => row.certificate ?? "",
  cell: (row) => row.certificate,
};

/** Certificates have a column only where somebody has one. */
const columns = (close, rows) => [
  {
    key: "peer",
    title: "Peer",
    isHead: true,
    sort: (row) => row.peer,
    cell: (row) => row.peer,
  },
  { key: "edge", title: "Edge", width: "6rem", sort: (row) => row.edge, cell: (row) => row.edge },
  {
    key: "listener",
    title: "Through",
    width: "9rem",
    prio: 2,
    sort: (row) => row.listener,
    cell: (row) => row.listener,
  },
  ...(rows.some(({ certificate }) => certificate) ? [CERTIFICATE] : []),
  {
    key: "state",
    title: "State",
    width: "8rem",
    prio: 3,
    sort: (row) => row.state,
    cell: (row) => row.state,
  },
  {
    key: "opened",
    title: "Open for",
    isNumber: true,
    width: "7rem",
    prio: 2,
    sort: (row) => -new Date(row.openedAt),
    cell: (row) => age(since(row.openedAt)),
  },
  octets("receivedOctets", "Received"),
  octets("sentOctets", "Sent"),
  {
    key: "close",
    title: html`<span class="unseen">Action</span>`,
    width: "6rem",
    cell: (row, tab) =>
      may("operate") &&
      row.state !== "closing" &&
      html`<button class="small" tabindex=${tab} aria-label=${`Close ${row.peer}`} onClick=${() => close(row)}>Close…</button>`,
  },
];

const moreOf = ({ id, process, detail }) => [
  ["Id", html`<code>${id}</code>`],
  ["Process", html`<code>${process}</code>`],
  ...Object.entries(detail ?? {}).map(([name, value]) => [
    name,
    value === null || typeof value === "string" ? value : JSON.stringify(value),
  ]),
];

export function Connections() {
  const { filter = "", edge = "" } = route.value.query;
  const pages = usePages("connections", { edge, limit: LIMIT });
  const [closing, close, keep] = useOpen();
  const wanted = filter.toLowerCase();
  const rows = pages.items.filter((row) =>
    [row.peer, row.edge, row.listener, row.certificate, row.id].join(" ").toLowerCase().includes(wanted),
  );
  const known = [...new Set((edges.value ?? []).map((each) => each.edge))].sort();
  return html`
    <${Head} title="Connections" actions=${html`<button disabled=${pages.isBusy} onClick=${pages.again}>Look again</button>`}>
      <p class="soft">As the edges told when they were asked just now.</p>
    <//>
    <div class="tools">
      <${Filter} label="Filter connections" />
      ${known.length > 1 && html`<${Choice} name="edge" label="Of which edge" choices=${[["", "All"], ...known.map((each) => [each, each])]} />`}
      <${Tally} shown=${rows.length} all=${pages.items.length} one="connection" />
    </div>
    <${ProblemBox} problem=${pages.problem} again=${pages.again} />
    <${Silent} pages=${pages} />
    ${pages.isLoading && html`<p class="soft loading" aria-busy="true">Asking the edges…</p>`}
    ${!pages.isLoading && !pages.problem && html`<${Table} label="Connections" columns=${columns(close, rows)} rows=${rows} keyOf=${(row) => row.id} more=${moreOf} sort="peer" empty=${html`<${Empty} title=${pages.items.length ? "No connection matches." : "Nobody is connected."} />`} />`}
    <${More} pages=${pages} what="connections" />
    ${closing && html`<${Close} row=${closing} onClose=${keep} onDone=${pages.again} />`}
  `;
}

function Close({ row, onClose, onDone }) {
  const done = () => {
    say(`The connection of ${row.peer} ends.`);
    onClose();
    onDone();
  };
  return html`
    <${Confirm} title="Close this connection" action="Close it" act=${() => change("DELETE", at`connections/${row.id}`)} onDone=${done} onClose=${onClose}>
      <${Facts} class="lines" facts=${[
        ["Peer", row.peer],
        ["Edge", `${row.edge}, ${row.listener}`],
        ["Open for", age(since(row.openedAt))],
      ]} />
      <p>What it holds goes back to its queues. The client may connect again at once.</p>
    <//>
  `;
}
