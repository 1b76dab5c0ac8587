// Peers: other systems that exchange messages with this one, and the text service's links to them.

import { html, useState } from "../html.js";
import { at, change } from "../api.js";
import { useResource, useAction, usePages } from "../fetching.js";
import { age, since } from "../formats.js";
import { PeerQueues } from "../components/peerqueues.js";
import { Delete } from "../components/delete.js";
import { Dialog } from "../components/dialog.js";
import { DocumentView, ManagedByOperator, parseJson } from "../components/document.js";
import { Badge, Filter, Head, useOpen } from "../components/fields.js";
import { notify } from "../components/notices.js";
import { Empty, Loaded, NoMatch, ProblemBox } from "../components/problem.js";
import { Replace } from "../components/replace.js";
import { octets, Table, Tally } from "../components/table.js";
import { go, href, route } from "../routes.js";
import { may } from "../session.js";

const COLUMNS = [
  {
    key: "name",
    title: "Peer",
    isHead: true,
    width: "26%",
    sort: (row) => row.name,
    cell: ({ name }, tab) => html`<a href=${href(["peers", name])} tabindex=${tab}>${name}</a>`,
  },
  {
    key: "protocol",
    title: "Protocol",
    width: "7rem",
    sort: (row) => row.spec?.protocol ?? "",
    cell: ({ spec, unreadable }) =>
      spec ? spec.protocol : html`<${Badge} tone="bad" title=${unreadable}>unreadable<//>`,
  },
  { key: "addresses", title: "Addresses", cell: ({ spec }) => spec?.addresses.join(", ") },
  {
    key: "owner",
    title: "Owner",
    width: "9rem",
    prio: 2,
    sort: (row) => row.owner,
    cell: ({ owner }) => owner,
  },
];

export function Peers({ parts: [, name] }) {
  return name === undefined ? html`<${All} />` : html`<${One} key=${name} name=${name} />`;
}

function All() {
  const pages = usePages("peers", { limit: 1000 });
  const { filter = "" } = route.value.query;
  const rows = pages.items.filter((row) => JSON.stringify(row).toLowerCase().includes(filter.toLowerCase()));
  const [isNew, open, close] = useOpen();
  return html`
    <${Head} title="Peers" actions=${may("admin") && html`<button onClick=${() => open(true)}>New peer…</button>`}>
      <p class="soft">Other systems that exchange messages with this one.</p>
    <//>
    <div class="tools"><${Filter} label="Filter peers" />${pages.data && html`<${Tally} shown=${rows.length} all=${pages.items.length} one="peer" />`}</div>
    <${Loaded} resource=${pages}>
      ${() => html`<${Table} label="Peers" columns=${COLUMNS} rows=${rows} keyOf=${(row) => row.name} sort="name"
        empty=${pages.items.length ? html`<${NoMatch} what="peer" view="peers" />` : html`<${Empty} title="No peers are declared.">Declare one with <code>penstock peer apply</code>${may("admin") && ", or create one here"}.<//>`} />`}
    <//>
    ${pages.data && html`<${TextLinks} peers=${pages.items} />`}
    ${isNew && html`<${NewPeer} onClose=${close} />`}
  `;
}

const LINKS = [
  { key: "peer", title: "Neighbour", isHead: true, cell: ({ detail }) => html`store <code>${detail.peerName}</code>` },
  { key: "address", title: "Address", width: "12rem", cell: (row) => row.peer },
  { key: "listener", title: "Listener", width: "8rem", prio: 2, cell: (row) => row.listener },
  { key: "opened", title: "Up for", isNumber: true, width: "7rem", cell: (row) => age(since(row.openedAt)) },
  octets("receivedOctets", "Received"),
  octets("sentOctets", "Sent"),
];

/** Connections between text servers of different stores, in either direction. */
function TextLinks({ peers }) {
  const wanted = peers.flatMap(({ spec }) => (spec?.protocol === "text" ? spec.addresses : []));
  const resource = useResource("connections", { edge: "pubsub", named: true, limit: 1000 }, 10_000);
  return html`
    <section>
      <h2>Text links</h2>
      <${ProblemBox} problem=${resource.problem} retry=${resource.reload} />
      ${resource.data && html`<${Table} label="Text links" columns=${LINKS} rows=${resource.data.items} sortAs="links" keyOf=${({ id }) => id} empty=${html`<${NoLink} wanted=${wanted} />`} />`}
    </section>
  `;
}

const NoLink = ({ wanted }) => html`
  <${Empty} title="No links to other text servers.">
    ${wanted.length > 0 ? `Edges keep trying to connect to ${wanted.join(", ")}, as declared by peers.` : "No peer uses the text protocol."}
    ${" "}Neighbours in the settings of edges (<code>edges.pubsub.neighbours</code>) are not shown.
  <//>
`;

function One({ name }) {
  const path = at`peers/${name}`;
  const resource = useResource(path);
  const [open, setOpen, close] = useOpen();
  return html`
    <${Head} above=${html`<a href="#/peers">Peers</a>`} title=${name} actions=${resource.data && may("admin") && html`<${Actions} peer=${resource.data} open=${setOpen} />`}>
      ${resource.data?.owner && html`<p class="badges"><${Badge}>Owner: ${resource.data.owner}<//></p>`}
    <//>
    ${may("admin") && html`<${ManagedByOperator} kind="Peer" owner=${resource.data?.owner} />`}
    <${Loaded} resource=${resource}>
      ${(peer) => html`
        ${peer.unreadable ? html`<${Unreadable} peer=${peer} />` : html`<${DocumentView} kind="Peer" name=${name} spec=${peer.spec} path=${path} etag=${resource.etag} mayChange=${may("admin")} onChanged=${resource.reload} />`}
        ${/^rqp/.test(peer.spec?.protocol) && html`<${PeerQueues} peer=${name} protocol=${peer.spec.protocol} />`}
        ${
          open === "replace" &&
          html`<${Replace} name=${name} path=${path} why=${peer.unreadable} etag=${resource.etag} reload=${resource.reload} initial=${EXAMPLE} onClose=${close}>
          The document has the protocol and the addresses of the peer. Queues that are forwarded to it keep their messages.
        <//>`
        }
        ${
          open === "delete" &&
          html`<${Delete} what="Peer" name=${name} path=${path} etag=${resource.etag} reload=${resource.reload} back=${["peers"]} onClose=${close}>
          <p>Queues that are forwarded to this peer keep their messages, and report that it is missing.</p>
        <//>`
        }
      `}
    <//>
  `;
}

const Actions = ({ peer, open }) => html`
  ${peer.unreadable && html`<button onClick=${() => open("replace")}>Replace…</button>`}
  <button class="danger" onClick=${() => open("delete")}>Delete…</button>
`;

/** Shown in place of a document that cannot be read. */
const Unreadable = ({ peer }) => html`
  <p class="problem" role="alert">
    This version cannot read the peer's document: ${peer.unreadable}. Edges of this version ignore the peer. Use the version that wrote
    the document to view or edit it${may("admin") ? ", or replace the whole document" : ""}.
  </p>
`;

const EXAMPLE = `{
  "protocol": "rqp-mca",
  "addresses": ["10.0.0.7"]
}`;

function NewPeer({ onClose }) {
  const [name, setName] = useState("");
  const [text, setText] = useState(EXAMPLE);
  const action = useAction(() => change("PUT", at`peers/${name}`, { body: parseJson(text), create: true }));
  const submit = async (event) => {
    event.preventDefault();
    if (!name || !(await action.run())) return;
    notify(`Peer ${name} created.`);
    onClose();
    go(["peers", name]);
  };
  return html`
    <${Dialog} title="New peer" onClose=${onClose}>
      <form onSubmit=${submit}>
        <label class="field">Name <input required autofocus autocomplete="off" spellcheck="false" value=${name} onInput=${(event) => setName(event.target.value)} /></label>
        <label class="field"><span>Document (<code>spec</code>, as JSON)</span>
          <textarea rows="6" spellcheck="false" class="code" value=${text} onInput=${(event) => setText(event.target.value)} />
        </label>
        <${ProblemBox} problem=${action.problem} />
        <footer><button type="button" onClick=${onClose}>Cancel</button><button class="primary" disabled=${action.isBusy || !name}>Create</button></footer>
      </form>
    <//>
  `;
}
