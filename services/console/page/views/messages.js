// What is in a queue, looked at without taking anything out.

import { html, useMemo, useState } from "../html.js";
import { at } from "../api.js";
import { usePages } from "../asking.js";
import { decode, preview } from "../bodies.js";
import { age, bytes, count, several } from "../formats.js";
import { Attributes, BodyView } from "../parts/body.js";
import { Choice, Facts, More, Time } from "../parts/fields.js";
import { Empty, ProblemBox } from "../parts/problem.js";
import { route } from "../routes.js";

const NUMBERS = [
  ["50", "50"],
  ["200", "200"],
  ["1000", "1,000"],
];
const OCTETS = 4 << 20; // of all bodies together,
const MOST_OCTETS = 65_536; // and of each

export function Messages({ queue }) {
  const { first = "50" } = route.value.query;
  const octets = Math.min(Math.floor(OCTETS / first), MOST_OCTETS);
  const pages = usePages(at`queues/${queue.name}/messages`, { limit: first, octets });
  return html`
    <section>
      <div class="tools">
        <p class="soft">The oldest first. Looking changes nothing: nothing is taken, and no delivery is counted.</p>
        <button disabled=${pages.isBusy} onClick=${pages.again}>Look again</button>
        <${Choice} name="first" label="How many" choices=${NUMBERS} />
        <p class="soft tally" aria-live="polite">${shownOf(pages, queue)}</p>
      </div>
      <${ProblemBox} problem=${pages.problem} again=${pages.again} />
      ${pages.isLoading && html`<p class="soft loading" aria-busy="true">Loading…</p>`}
      ${!pages.isLoading && !pages.problem && pages.items.length === 0 && html`<${Empty} title="The queue is empty." />`}
      <ol class="messages">${pages.items.map((message) => html`<${Message} key=${message.position} message=${message} />`)}</ol>
      <${More} pages=${pages} what="messages" />
    </section>
  `;
}

/** The API looks at no more than it may hold at a time, so large ones may be fewer than were asked for; More goes on. */
function shownOf({ items, isLoading }, { ready }) {
  if (isLoading || !items.length) return "";
  return items.length < ready
    ? `the first ${count(items.length)} of ${count(ready)}`
    : several(items.length, "message");
}

function Message({ message }) {
  const [isOpen, setOpen] = useState(false);
  const line = useMemo(() => preview(decode(message.bodyBase64)), [message.bodyBase64]);
  return html`
    <li>
      <details onToggle=${(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <span class="preview">${line || html`<i>empty</i>`}</span>
          <span class="n soft">${bytes(message.bytes)}</span>
          <span class="n soft">${age(message.ageMs)}</span>
        </summary>
        ${isOpen && html`<${Opened} message=${message} />`}
      </details>
    </li>
  `;
}

/** Of a thousand, only those that somebody looks at are laid out. */
const Opened = ({ message }) => html`
  <div class="opened">
    <${Facts} facts=${[
      ["Position", html`<code>${message.position}</code>`],
      ["Put in", html`<${Time} at=${message.enqueuedAt} />`],
      ["By", message.origin],
      ["Given out", count(message.givenOut)],
      ["Failed", count(message.failed)],
    ]} />
    <${Attributes} attributes=${message.attributes} />
    <${BodyView} base64=${message.bodyBase64} size=${message.bytes} />
  </div>
`;
