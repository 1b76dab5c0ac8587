// One dead letter: why it died, what it went through, and its body.

import { html } from "../html.js";
import { at, download } from "../api.js";
import { useAsked, useDoing } from "../asking.js";
import { age, several } from "../formats.js";
import { seen } from "../names.js";
import { Attributes, BodyView } from "../parts/body.js";
import { Facts, Time, useOpen } from "../parts/fields.js";
import { Asked, ProblemBox } from "../parts/problem.js";
import { Purge } from "../parts/purge.js";
import { Redrive } from "../parts/redrive.js";
import { go, href, route } from "../routes.js";
import { may } from "../session.js";

export function Letter({ queue, id }) {
  const path = at`queues/${queue.name}/dead/${id}`;
  const asked = useAsked(path);
  const [open, setOpen, close] = useOpen();
  const up = ["queues", queue.name, "dead"];
  const back = () => go(up, route.peek().query);
  return html`
    <p><a href=${href(up, route.value.query)}>← All dead letters of ${seen(queue.name)}</a></p>
    <${Asked} asked=${asked}>
      ${(letter) => html`
        <article class="letter">
          <header>
            <h2>${letter.reason}</h2>
            ${letter.error && html`<p>${letter.error}</p>`}
            ${
              may("operate") &&
              html`<div class="actions">
              <button class="primary" onClick=${() => setOpen("redrive")}>Redrive…</button>
              <button class="danger" onClick=${() => setOpen("purge")}>Purge…</button>
            </div>`
            }
          </header>
          <div class="pair">
            <${Story} letter=${letter} />
            <div>
              <${Facts} class="lines" facts=${[
                ["Id", html`<code>${letter.id}</code>`],
                ["Put in by", letter.origin],
                ["Note", letter.note],
              ]} />
              <${Attributes} attributes=${letter.attributes} />
            </div>
          </div>
          <${BodyView} base64=${letter.bodyBase64} size=${letter.bytes} more=${html`<${Download} path=${`${path}/body`} name=${`${queue.name.replace(/[^\w.-]/g, "_")}-${id}.bin`} />`} />
        </article>
      `}
    <//>
    ${open === "redrive" && html`<${Redrive} queue=${queue} filter=${{}} ids=${[id]} onClose=${close} onDone=${back} />`}
    ${open === "purge" && html`<${Purge} queue=${queue} filter=${{}} ids=${[id]} onClose=${close} onDone=${back} />`}
  `;
}

function Download({ path, name }) {
  const doing = useDoing(() => download(path, name));
  return html`<button class="small" disabled=${doing.isBusy} onClick=${doing.run}>Download</button><${ProblemBox} problem=${doing.problem} />`;
}

/** Its life, as points of time. */
function Story({ letter }) {
  const { enqueuedAt, firstAt, lastAt, diedAt, acquired, failed, redriven } = letter;
  const steps = [
    [enqueuedAt, "put in", redriven ? `it had been brought back ${several(redriven, "time")} before` : ""],
    acquired > 0 &&
      firstAt && [firstAt, "first given out", `after ${age(new Date(firstAt) - new Date(enqueuedAt))}`],
    acquired > 1 &&
      lastAt && [
        lastAt,
        "last given out",
        `${several(acquired, "delivery", "deliveries")}, ${failed} failed`,
      ],
    [
      diedAt,
      "died",
      `${acquired ? "" : "never given out, "}${age(new Date(diedAt) - new Date(enqueuedAt))} old`,
    ],
  ];
  return html`
    <ol class="story" aria-label="History">
      ${steps.filter(Boolean).map(([at, what, more]) => html`<li key=${what}><${Time} at=${at} /> <strong>${what}</strong> <span class="soft">${more}</span></li>`)}
    </ol>
  `;
}
