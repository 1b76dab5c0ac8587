// What is in a queue, looked at without taking anything out.

import { html, useMemo } from "../html.js";
import { at } from "../api.js";
import { usePages } from "../asking.js";
import { decode, preview } from "../bodies.js";
import { age, bytes, count } from "../formats.js";
import { Attributes, BodyView } from "../parts/body.js";
import { Facts, More, Time } from "../parts/fields.js";
import { Empty, ProblemBox } from "../parts/problem.js";

const LIMIT = 50;
const OCTETS = 65_536; // of each body

export function Messages({ queue }) {
  const pages = usePages(at`queues/${queue.name}/messages`, { limit: LIMIT, octets: OCTETS });
  return html`
    <section>
      <div class="tools">
        <p class="soft">The oldest first. Looking changes nothing: nothing is taken, and no delivery is counted.</p>
        <button disabled=${pages.isBusy} onClick=${pages.again}>Look again</button>
      </div>
      <${ProblemBox} problem=${pages.problem} again=${pages.again} />
      ${pages.isLoading && html`<p class="soft loading" aria-busy="true">Loading…</p>`}
      ${!pages.isLoading && !pages.problem && pages.items.length === 0 && html`<${Empty} title="The queue is empty." />`}
      <ol class="messages">${pages.items.map((message) => html`<${Message} key=${message.position} message=${message} />`)}</ol>
      <${More} pages=${pages} what="messages" />
    </section>
  `;
}

function Message({ message }) {
  const line = useMemo(() => preview(decode(message.bodyBase64)), [message.bodyBase64]);
  return html`
    <li>
      <details>
        <summary>
          <span class="preview">${line || html`<i>empty</i>`}</span>
          <span class="n soft">${bytes(message.bytes)}</span>
          <span class="n soft">${age(message.ageMs)}</span>
        </summary>
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
      </details>
    </li>
  `;
}
