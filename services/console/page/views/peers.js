// Other systems that messages go to or come from: their documents, and the links of the text service to them.

import { html, useState } from "../html.js";
import { at, change } from "../api.js";
import { useAsked, useDoing, usePages } from "../asking.js";
import { age, since } from "../formats.js";
import { Carried } from "../parts/carried.js";
import { Delete } from "../parts/delete.js";
import { Dialog } from "../parts/dialog.js";
import { DocumentView, read, TurnedBack } from "../parts/document.js";
import { Badge, Filter, Head, useOpen } from "../parts/fields.js";
import { say } from "../parts/notices.js";
import { Asked, Empty, ProblemBox } from "../parts/problem.js";
import { Replace } from "../parts/replace.js";
import { octets, Table, Tally } from "../parts/table.js";
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
    <${Head} title="Peers" actions=${may("admin") && html`<button onClick=${() => open(true)}>New peer</button>`}>
      <p class="soft">Other systems that messages go to or come from.</p>
    <//>
    <div class="tools"><${Filter} label="Filter peers" /><${Tally} shown=${rows.length} all=${pages.items.length} one="peer" /></div>
    <${ProblemBox} problem=${pages.problem} again=${pages.again} />
    ${pages.isLoading && html`<p class="soft loading" aria-busy="true">Loading…</p>`}
    ${
      !pages.isLoading &&
      !pages.problem &&
      html`<${Table} label="Peers" columns=${COLUMNS} rows=${rows} keyOf=${(row) => row.name} sort="name"
      empty=${html`<${Empty} title=${pages.items.length ? "No peer matches." : "No peers are declared."}>Declare one with <code>penstock peer apply</code>, or here.<//>`} />`
    }
    <${TextLinks} peers=${pages.items} />
    ${isNew && html`<${NewPeer} onClose=${close} />`}
  `;
}

const LINKS = [
  { key: "peer", title: "Neighbour", isHead: true, cell: ({ detail }) => html`store <code>${detail.peerName}</code>` },
  { key: "address", title: "Address", width: "12rem", cell: (row) => row.peer },
  { key: "listener", title: "Through", width: "8rem", prio: 2, cell: (row) => row.listener },
  { key: "opened", title: "Up for", isNumber: true, width: "7rem", cell: (row) => age(since(row.openedAt)) },
  octets("receivedOctets", "Received"),
  octets("sentOctets", "Sent"),
];

/** Connections of the text service to servers on other stores, dialled or accepted. */
function TextLinks({ peers }) {
  const wanted = peers.flatMap(({ spec }) => (spec?.protocol === "text" ? spec.addresses : []));
  const asked = useAsked("connections", { edge: "pubsub", named: true, limit: 1000 }, 10_000);
  return html`
    <section>
      <h2>Text links</h2>
      <${ProblemBox} problem=${asked.problem} again=${asked.again} />
      ${asked.data && html`<${Table} label="Text links" columns=${LINKS} rows=${asked.data.items} sortAs="links" keyOf=${({ id }) => id} empty=${html`<${NoLink} wanted=${wanted} />`} />`}
    </section>
  `;
}

/** What edges dial by their own settings the store does not know. */
const NoLink = ({ wanted }) => html`
  <${Empty} title="No link to another text server is up.">
    ${wanted.length > 0 ? `Peers name ${wanted.join(", ")}, and edges dial them again and again.` : "No peer of the text service is declared."}
    ${" "}What edges have in their settings (<code>edges.pubsub.neighbours</code>) is not known here.
  <//>
`;

function One({ name }) {
  const path = at`peers/${name}`;
  const asked = useAsked(path);
  const [open, setOpen, close] = useOpen();
  return html`
    <${Head} above=${html`<a href="#/peers">Peers</a>`} title=${name} actions=${asked.data && may("admin") && html`<${Actions} peer=${asked.data} open=${setOpen} />`}>
      ${asked.data?.owner && html`<p class="badges"><${Badge}>of ${asked.data.owner}<//></p>`}
    <//>
    ${may("admin") && html`<${TurnedBack} kind="Peer" owner=${asked.data?.owner} />`}
    <${Asked} asked=${asked}>
      ${(peer) => html`
        ${peer.unreadable ? html`<${Unreadable} peer=${peer} />` : html`<${DocumentView} kind="Peer" name=${name} spec=${peer.spec} path=${path} etag=${asked.etag} mayChange=${may("admin")} onChanged=${asked.again} />`}
        ${/^rqp/.test(peer.spec?.protocol) && html`<${Carried} peer=${name} protocol=${peer.spec.protocol} />`}
        ${
          open === "replace" &&
          html`<${Replace} name=${name} path=${path} why=${peer.unreadable} seen=${asked.etag} again=${asked.again} first=${EXAMPLE} onClose=${close}>
          That is how and where the peer is reached; queues that lead to it keep their messages.
        <//>`
        }
        ${
          open === "delete" &&
          html`<${Delete} what="Peer" name=${name} path=${path} seen=${asked.etag} again=${asked.again} back=${["peers"]} onClose=${close}>
          <p>Queues that lead to this peer keep their messages and say that it is missing.</p>
        <//>`
        }
      `}
    <//>
  `;
}

const Actions = ({ peer, open }) => html`
  ${peer.unreadable && html`<button onClick=${() => open("replace")}>Replace…</button>`}
  <button class="danger" onClick=${() => open("delete")}>Delete</button>
`;

/** One whose document cannot be read: nothing of it can be shown, or kept in a change. */
const Unreadable = ({ peer }) => html`
  <p class="problem" role="alert">
    This version cannot read the document of the peer: ${peer.unreadable}. Edges of this version leave the peer out. Look at the
    document, or change it, with the version that wrote it${may("admin") ? ", or replace it as a whole" : ""}.
  </p>
`;

const EXAMPLE = `{
  "protocol": "rqp-mca",
  "addresses": ["10.0.0.7"]
}`;

function NewPeer({ onClose }) {
  const [name, setName] = useState("");
  const [text, setText] = useState(EXAMPLE);
  const doing = useDoing(() => change("PUT", at`peers/${name}`, { body: read(text), create: true }));
  const submit = async (event) => {
    event.preventDefault();
    if (!name || !(await doing.run())) return;
    say(`Peer ${name} is there.`);
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
        <${ProblemBox} problem=${doing.problem} />
        <footer><button type="button" onClick=${onClose}>Cancel</button><button class="primary" disabled=${doing.isBusy || !name}>Create</button></footer>
      </form>
    <//>
  `;
}
