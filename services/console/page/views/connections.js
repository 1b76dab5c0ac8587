// Client connections of all edges, and the dialog that closes one.

import { html } from "../html.js";
import { at, change } from "../api.js";
import { usePages } from "../fetching.js";
import { age, bytes, since } from "../formats.js";
import { Choice, Facts, Filter, Head, LoadMore, MissingProcesses, useOpen } from "../components/fields.js";
import { Confirm } from "../components/dialog.js";
import { notify } from "../components/notices.js";
import { Empty, Loaded, NoMatch } from "../components/problem.js";
import { octets, Table, Tally } from "../components/table.js";
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

/** The column of certificates is there only if a row has one. */
const columns = (close, rows) => [
  {
    key: "peer",
    title: "Remote address",
    isHead: true,
    sort: (row) => row.peer,
    cell: (row) => row.peer,
  },
  { key: "edge", title: "Edge", width: "6rem", sort: (row) => row.edge, cell: (row) => row.edge },
  {
    key: "listener",
    title: "Listener",
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

const DETAILS = { unsentOctets: "Not yet sent", heldOctets: "Incomplete input", peerName: "Neighbour" };

const moreOf = ({ id, process, detail }) => [
  ["ID", html`<code>${id}</code>`],
  ["Process", html`<code>${process}</code>`],
  ...Object.entries(detail ?? {}).map(([name, value]) => [
    DETAILS[name] ?? name,
    /Octets$/.test(name) ? bytes(value) : value === null || typeof value === "string" ? value : JSON.stringify(value),
  ]),
];

export function Connections() {
  const { filter = "", edge = "" } = route.value.query;
  const pages = usePages("connections", { edge, limit: LIMIT });
  const [closing, close, cancel] = useOpen();
  const wanted = filter.toLowerCase();
  const rows = pages.items.filter((row) =>
    [row.peer, row.edge, row.listener, row.certificate, row.id].join(" ").toLowerCase().includes(wanted),
  );
  const known = [...new Set((edges.value ?? []).map((each) => each.edge))].sort();
  return html`
    <${Head} title="Connections" actions=${html`<button disabled=${pages.isBusy} onClick=${pages.reload}>Refresh</button>`}>
      <p class="soft">As reported by the edges just now.</p>
    <//>
    <div class="tools">
      <${Filter} label="Filter connections" />
      ${known.length > 1 && html`<${Choice} name="edge" label="Edge" choices=${[["", "All"], ...known.map((each) => [each, each])]} />`}
      ${pages.data && html`<${Tally} shown=${rows.length} all=${pages.items.length} one="connection" />`}
    </div>
    <${MissingProcesses} pages=${pages} />
    <${Loaded} resource=${pages}>${() => html`<${Table} label="Connections" columns=${columns(close, rows)} rows=${rows} keyOf=${(row) => row.id} more=${moreOf} sort="peer" empty=${pages.items.length ? html`<${NoMatch} what="connection" view="connections" />` : html`<${Empty} title="No connections.">Clients that connect to an edge are listed here.<//>`} />`}<//>
    <${LoadMore} pages=${pages} what="connections" />
    ${closing && html`<${Close} row=${closing} onClose=${cancel} onDone=${pages.reload} />`}
  `;
}

function Close({ row, onClose, onDone }) {
  const done = () => {
    notify(`Closing the connection of ${row.peer}.`);
    onClose();
    onDone();
  };
  return html`
    <${Confirm} title="Close connection" action="Close connection" act=${() => change("DELETE", at`connections/${row.id}`)} onDone=${done} onClose=${onClose}>
      <${Facts} class="lines" facts=${[
        ["Remote address", row.peer],
        ["Edge", `${row.edge}, listener ${row.listener}`],
        ["Open for", age(since(row.openedAt))],
      ]} />
      <p>Its unacknowledged messages return to their queues. The client can reconnect at once.</p>
    <//>
  `;
}
