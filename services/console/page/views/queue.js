// One queue: its state and history, messages, dead letters, and document.

import { html, names, useEffect } from "../html.js";
import { at, change } from "../api.js";
import { useResource, useAction } from "../fetching.js";
import { Delete } from "../components/delete.js";
import { DocumentView, resourceOf, ManagedByOperator } from "../components/document.js";
import { PurgeQueue } from "../components/purgequeue.js";
import { Badge, Head, useOpen } from "../components/fields.js";
import { notify } from "../components/notices.js";
import { Loaded, ProblemBox } from "../components/problem.js";
import { Publish } from "../components/publish.js";
import { Replace } from "../components/replace.js";
import { count, several } from "../formats.js";
import { href } from "../routes.js";
import { may } from "../session.js";
import { queues } from "../state.js";
import { DeadLetters } from "./deadletters.js";
import { Letter } from "./deadletter.js";
import { Messages } from "./messages.js";
import { QueueStatus, Unreadable } from "./queuestatus.js";

const EVERY_MS = 5000;

export function Queue({ parts: [, name, tab = "", id] }) {
  const resource = useResource(at`queues/${name}`, {}, EVERY_MS);
  const [open, setOpen, close] = useOpen();
  // figures of the event stream are newer than the fetched document
  const queue = resource.data && { ...resource.data, ...queues.value.get(name) };
  const isListed = queues.value.has(name);
  useEffect(() => {
    if (resource.data && !isListed) resource.reload(); // it was deleted: remove its buttons at once
  }, [isListed]);
  return html`
    <${Head}
      above=${html`<a href="#/queues">Queues</a>`}
      title=${name}
      actions=${queue && html`<${Actions} queue=${queue} resource=${resource} open=${setOpen} />`}
    >
      ${queue && html`<${Badges} queue=${queue} />`}
    <//>
    ${may("admin") && html`<${ManagedByOperator} kind="Queue" owner=${queue?.owner} />`}
    <${Loaded} resource=${{ ...resource, data: queue }}>
      ${() => html`
        <${Tabs} queue=${queue} tab=${tab} />
        <${View} queue=${queue} tab=${tab} id=${id} resource=${resource} />
        ${open === "publish" && html`<${Publish} name=${name} onClose=${close} onDone=${resource.reload} />`}
        ${open === "replace" && html`<${Replace} name=${name} path=${at`queues/${name}`} query=${{ replaceUnreadable: true }} why=${queue.unreadable} etag=${resource.etag} reload=${resource.reload}
          onClose=${close}>The document has the queue's limits, bindings and forwarding. Messages stay.<//>`}
        ${open === "purge" && html`<${PurgeQueue} name=${name} onClose=${close} onDone=${resource.reload} />`}
        ${open === "delete" && html`<${Delete} what="Queue" name=${name} path=${at`queues/${name}`} etag=${resource.etag} reload=${resource.reload} back=${["queues"]}
          onClose=${close}><${DeletionWarning} queue=${queue} /><//>`}
      `}
    <//>
  `;
}

function View({ queue, tab, id, resource }) {
  const { name } = queue;
  if (tab === "messages") return html`<${Messages} queue=${queue} />`;
  if (tab === "dead" && id) return html`<${Letter} key=${id} queue=${queue} id=${id} />`;
  if (tab === "dead") return html`<${DeadLetters} queue=${queue} />`;
  if (queue.unreadable) return html`<${Unreadable} queue=${queue} />`;
  if (tab === "document")
    return html`<${DocumentView} kind="Queue" name=${name} spec=${queue.spec} path=${at`queues/${name}`} etag=${resource.etag} mayChange=${may("admin")} onChanged=${resource.reload} />`;
  return html`<${QueueStatus} queue=${queue} />`;
}

function Badges({ queue }) {
  return html`
    <p class="badges">
      ${queue.paused && html`<${Badge} tone="warn">Paused<//> `}
      ${queue.condition && html`<${Badge} tone="bad" title=${queue.condition}>${queue.unreadable ? "Unreadable document" : queue.condition}<//> `}
      ${queue.unkept && html`<${Badge} tone="bad">The store cannot honour its ack level<//> `}
      ${queue.remote && html`<${Badge}>Forwarded over ${queue.remote}<//> `}
      <${Badge} title="what an acknowledgement guarantees">Ack level: ${queue.ackLevel}<//> <${Badge} title="transaction domain">Domain: ${queue.domain}<//>
      ${queue.owner && html` <${Badge} title="declared by">Owner: ${queue.owner}<//>`}
    </p>
  `;
}

const TABS = [
  ["", "Status", () => null],
  ["messages", "Messages", ({ ready }) => ready],
  ["dead", "Dead letters", ({ dead }) => dead],
  ["document", "Document", () => null],
];

const Tabs = ({ queue, tab }) => html`
  <nav class="tabs" aria-label="Queue">
    ${TABS.filter(([key]) => key !== "document" || !queue.unreadable).map(([key, title, figure]) => {
      const n = figure(queue);
      return html`<a key=${key} href=${href(["queues", queue.name, ...(key ? [key] : [])])} aria-current=${tab === key ? "page" : undefined}>
        ${title}${n ? html` <span class=${names({ figure: true, bad: key === "dead" })}>${count(n)}</span>` : ""}
      </a>`;
    })}
  </nav>
`;

const Actions = ({ queue, resource, open }) => html`
  ${queue.unreadable ? may("admin") && html`<button onClick=${() => open("replace")}>Replace…</button>` : html`<${QueueActions} queue=${queue} resource=${resource} open=${open} />`}
  ${may("admin") && html`<button class="danger" onClick=${() => open("purge")}>Purge queue…</button>`}
  ${may("admin") && html`<button class="danger" onClick=${() => open("delete")}>Delete…</button>`}
`;

function QueueActions({ queue, resource, open }) {
  const pausing = useAction(() =>
    change("PUT", at`queues/${queue.name}`, { body: toggled(queue), etag: resource.etag }),
  );
  const toggle = async () => {
    const until = resourceOf(queue.owner) === null ? "" : ", until the operator reverts it"; // afterwards the owner is the console
    if (await pausing.run())
      notify(`Queue ${queue.name} ${queue.paused ? "resumed" : "paused"}${until}.`);
    resource.reload();
  };
  return html`
    ${may("operate") && html`<button onClick=${() => open("publish")}>Publish…</button>`}
    ${may("admin") && html`<button disabled=${pausing.isBusy} onClick=${toggle}>${queue.paused ? "Resume" : "Pause"}</button>`}
    <${ProblemBox} problem=${pausing.problem} />
  `;
}

/** Return the spec with `paused` toggled. */
function toggled({ spec, paused: isPaused }) {
  const { paused: _, ...others } = spec;
  return isPaused ? others : { ...others, paused: true };
}

function DeletionWarning({ queue: { ready, inFlight, dead } }) {
  const lost = [
    [ready + inFlight, "message"],
    [dead, "dead letter"],
  ].filter(([n]) => n > 0);
  const listed = lost.map(([n, what], i) => html`${i > 0 && " and "}<strong>${several(n, what)}</strong>`);
  return html`<p>This permanently deletes the queue${lost.length ? html` with ${listed}.` : ", which is empty."}</p>`;
}
