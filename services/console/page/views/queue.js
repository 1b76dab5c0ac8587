// One queue: how it stands and how that went, what is in it, what died, and its document.

import { html, names, useEffect } from "../html.js";
import { at, change } from "../api.js";
import { useAsked, useDoing } from "../asking.js";
import { Delete } from "../parts/delete.js";
import { DocumentView, resourceOf, TurnedBack } from "../parts/document.js";
import { EmptyQueue } from "../parts/empty.js";
import { Badge, Head, useOpen } from "../parts/fields.js";
import { say } from "../parts/notices.js";
import { Asked, ProblemBox } from "../parts/problem.js";
import { Publish } from "../parts/publish.js";
import { Replace } from "../parts/replace.js";
import { count, several } from "../formats.js";
import { href } from "../routes.js";
import { may } from "../session.js";
import { queues } from "../state.js";
import { DeadLetters } from "./letters.js";
import { Letter } from "./letter.js";
import { Messages } from "./messages.js";
import { QueueNow, Unreadable } from "./queuenow.js";

const EVERY_MS = 5000;

export function Queue({ parts: [, name, tab = "", id] }) {
  const asked = useAsked(at`queues/${name}`, {}, EVERY_MS);
  const [open, setOpen, close] = useOpen();
  // figures of the stream are newer than the document that we asked for
  const queue = asked.data && { ...asked.data, ...queues.value.get(name) };
  const isListed = queues.value.has(name);
  useEffect(() => {
    if (asked.data && !isListed) asked.again(); // it was deleted: its buttons go at once
  }, [isListed]);
  return html`
    <${Head}
      above=${html`<a href="#/queues">Queues</a>`}
      title=${name}
      actions=${queue && html`<${Actions} queue=${queue} asked=${asked} open=${setOpen} />`}
    >
      ${queue && html`<${Badges} queue=${queue} />`}
    <//>
    ${may("admin") && html`<${TurnedBack} kind="Queue" owner=${queue?.owner} />`}
    <${Asked} asked=${{ ...asked, problem: asked.problem, data: queue }}>
      ${() => html`
        <${Tabs} queue=${queue} tab=${tab} />
        <${View} queue=${queue} tab=${tab} id=${id} asked=${asked} />
        ${open === "publish" && html`<${Publish} name=${name} onClose=${close} onDone=${asked.again} />`}
        ${open === "replace" && html`<${Replace} name=${name} path=${at`queues/${name}`} query=${{ replaceUnreadable: true }} why=${queue.unreadable} seen=${asked.etag} again=${asked.again}
          onClose=${close}>That is limits, bindings, and where it leads; messages stay.<//>`}
        ${open === "empty" && html`<${EmptyQueue} name=${name} onClose=${close} onDone=${asked.again} />`}
        ${open === "delete" && html`<${Delete} what="Queue" name=${name} path=${at`queues/${name}`} seen=${asked.etag} again=${asked.again} back=${["queues"]}
          action="Delete it and all that is in it" onClose=${close}><${Gone} queue=${queue} /><//>`}
      `}
    <//>
  `;
}

function View({ queue, tab, id, asked }) {
  const { name } = queue;
  if (tab === "messages") return html`<${Messages} queue=${queue} />`;
  if (tab === "dead" && id) return html`<${Letter} key=${id} queue=${queue} id=${id} />`;
  if (tab === "dead") return html`<${DeadLetters} queue=${queue} />`;
  if (queue.unreadable) return html`<${Unreadable} queue=${queue} />`;
  if (tab === "document")
    return html`<${DocumentView} kind="Queue" name=${name} spec=${queue.spec} path=${at`queues/${name}`} etag=${asked.etag} mayChange=${may("admin")} onChanged=${asked.again} />`;
  return html`<${QueueNow} queue=${queue} />`;
}

function Badges({ queue }) {
  return html`
    <p class="badges">
      ${queue.paused && html`<${Badge} tone="warn">paused<//> `}
      ${queue.condition && html`<${Badge} tone="bad">${queue.condition}<//> `}
      ${queue.unkept && html`<${Badge} tone="bad">the store cannot keep its ack level now<//> `}
      ${queue.remote && html`<${Badge}>leads elsewhere over ${queue.remote}<//> `}
      <${Badge} title="what an acknowledged message survives">${queue.ackLevel}<//> <${Badge} title="transaction domain">domain ${queue.domain}<//>
      ${queue.owner && html` <${Badge} title="who declared it">of ${queue.owner}<//>`}
    </p>
  `;
}

const TABS = [
  ["", "Now", () => null],
  ["messages", "Messages", ({ ready }) => ready],
  ["dead", "Dead letters", ({ dead }) => dead],
  ["document", "Document", () => null],
];

const Tabs = ({ queue, tab }) => html`
  <nav class="tabs" aria-label="Of this queue">
    ${TABS.filter(([key]) => key !== "document" || !queue.unreadable).map(([key, title, figure]) => {
      const n = figure(queue);
      return html`<a key=${key} href=${href(["queues", queue.name, ...(key ? [key] : [])])} aria-current=${tab === key ? "page" : undefined}>
        ${title}${n ? html` <span class=${names({ figure: true, bad: key === "dead" })}>${count(n)}</span>` : ""}
      </a>`;
    })}
  </nav>
`;

const Actions = ({ queue, asked, open }) => html`
  ${queue.unreadable ? may("admin") && html`<button onClick=${() => open("replace")}>Replace…</button>` : html`<${Usual} queue=${queue} asked=${asked} open=${open} />`}
  ${may("admin") && html`<button class="danger" onClick=${() => open("empty")}>Empty…</button>`}
  ${may("admin") && html`<button class="danger" onClick=${() => open("delete")}>Delete</button>`}
`;

function Usual({ queue, asked, open }) {
  const pausing = useDoing(() =>
    change("PUT", at`queues/${queue.name}`, { body: paused(queue), etag: asked.etag }),
  );
  const toggle = async () => {
    const until = resourceOf(queue.owner) === null ? "" : ", until the operator changes it back"; // the next owner is the console
    if (await pausing.run())
      say(`Queue ${queue.name} ${queue.paused ? "takes messages again" : "is paused"}${until}.`);
    asked.again();
  };
  return html`
    ${may("operate") && html`<button onClick=${() => open("publish")}>Publish</button>`}
    ${may("admin") && html`<button disabled=${pausing.isBusy} onClick=${toggle}>${queue.paused ? "Resume" : "Pause"}</button>`}
    <${ProblemBox} problem=${pausing.problem} />
  `;
}

/** Its document, the other way. */
function paused({ spec, paused: isPaused }) {
  const { paused: _, ...others } = spec;
  return isPaused ? others : { ...others, paused: true };
}

const Gone = ({ queue: { ready, inFlight, dead } }) => html`
  <p>The queue goes, and with it <strong>${several(ready + inFlight, "message")}</strong> and <strong>${several(dead, "dead letter")}</strong>, for good.</p>
`;
