// Browse a queue's ready messages without consuming them.

import { html, useMemo, useState } from "../html.js";
import { at } from "../api.js";
import { usePages } from "../fetching.js";
import { decode, preview } from "../bodies.js";
import { age, bytes, count, several } from "../formats.js";
import { Attributes, BodyView } from "../components/body.js";
import { Choice, Facts, LoadMore, Time } from "../components/fields.js";
import { Empty, ProblemBox } from "../components/problem.js";
import { route } from "../routes.js";

const NUMBERS = [
  ["50", "50"],
  ["200", "200"],
  ["1000", "1,000"],
];
const PAGE_OCTETS = 4 << 20; // of all bodies of a page
const BODY_OCTETS = 65_536; // at most, of each body

export function Messages({ queue }) {
  const { first = "50" } = route.value.query;
  const octets = Math.min(Math.floor(PAGE_OCTETS / first), BODY_OCTETS);
  const pages = usePages(at`queues/${queue.name}/messages`, { limit: first, octets });
  return html`
    <section>
      <div class="tools">
        <p class="soft">Oldest first. Browsing does not consume messages or count as a delivery.</p>
        <button disabled=${pages.isBusy} onClick=${pages.reload}>Refresh</button>
        <${Choice} name="first" label="Messages per page" choices=${NUMBERS} />
        <p class="soft tally" aria-live="polite">${shownOf(pages, queue)}</p>
      </div>
      <${ProblemBox} problem=${pages.problem} retry=${pages.reload} />
      ${pages.isLoading && html`<p class="soft loading" aria-busy="true">Loading…</p>`}
      ${!pages.isLoading && !pages.problem && pages.items.length === 0 && html`<${Empty} title=${queue.inFlight ? `No ready messages; ${count(queue.inFlight)} in flight.` : "The queue is empty."} />`}
      <ol class="messages">${pages.items.map((message) => html`<${Message} key=${message.position} message=${message} />`)}</ol>
      <${LoadMore} pages=${pages} what="messages" />
    </section>
  `;
}

/** A page of the API is limited in octets, so it may have fewer messages than requested; the next page follows. */
function shownOf({ items, isLoading }, { ready }) {
  if (isLoading || !items.length) return "";
  return items.length < ready
    ? `The first ${count(items.length)} of ${several(ready, "message")}`
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
          <span class="n soft" title="size">${bytes(message.bytes)}</span>
          <span class="n soft" title="published">${age(message.ageMs)} ago</span>
        </summary>
        ${isOpen && html`<${MessageDetails} message=${message} />`}
      </details>
    </li>
  `;
}

/** Rendered only once opened, as there may be a thousand. */
const MessageDetails = ({ message }) => html`
  <div class="opened">
    <${Facts} facts=${[
      ["Position", html`<code>${message.position}</code>`],
      ["Published", html`<${Time} at=${message.enqueuedAt} />`],
      ["Published by", message.origin],
      ["Deliveries", count(message.givenOut)],
      ["Failed deliveries", count(message.failed)],
    ]} />
    <${Attributes} attributes=${message.attributes} />
    <${BodyView} base64=${message.bodyBase64} size=${message.bytes} />
  </div>
`;
