// One dead letter: why it died, its history, and its body.

import { html } from "../html.js";
import { at, download } from "../api.js";
import { useResource, useAction } from "../fetching.js";
import { age, several } from "../formats.js";
import { visibleName } from "../names.js";
import { Attributes, BodyView } from "../components/body.js";
import { Facts, Time, useOpen } from "../components/fields.js";
import { Loaded, ProblemBox } from "../components/problem.js";
import { Purge } from "../components/purge.js";
import { Redrive } from "../components/redrive.js";
import { go, href, route } from "../routes.js";
import { may } from "../session.js";

export function Letter({ queue, id }) {
  const path = at`queues/${queue.name}/dead/${id}`;
  const resource = useResource(path);
  const [open, setOpen, close] = useOpen();
  const up = ["queues", queue.name, "dead"];
  const back = () => go(up, route.peek().query);
  return html`
    <p><a href=${href(up, route.value.query)}>← All dead letters of ${visibleName(queue.name)}</a></p>
    <${Loaded} resource=${resource}>
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
            <${Timeline} letter=${letter} />
            <div>
              <${Facts} class="lines" facts=${[
                ["ID", html`<code>${letter.id}</code>`],
                ["Published by", letter.origin],
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
  const action = useAction(() => download(path, name));
  return html`<button class="small" disabled=${action.isBusy} onClick=${action.run}>Download</button><${ProblemBox} problem=${action.problem} />`;
}

/** The history of a dead letter. */
function Timeline({ letter }) {
  const { enqueuedAt, firstAt, lastAt, diedAt, acquired, failed, redriven } = letter;
  const steps = [
    [enqueuedAt, "published", redriven ? `redriven ${several(redriven, "time")} before` : ""],
    acquired > 0 &&
      firstAt && [firstAt, "first delivered", `after ${age(new Date(firstAt) - new Date(enqueuedAt))}`],
    acquired > 1 &&
      lastAt && [
        lastAt,
        "last delivered",
        `${several(acquired, "delivery", "deliveries")}, ${failed} failed`,
      ],
    [
      diedAt,
      "died",
      `${acquired ? "" : "never delivered, "}${age(new Date(diedAt) - new Date(enqueuedAt))} old`,
    ],
  ];
  return html`
    <ol class="timeline" aria-label="History">
      ${steps.filter(Boolean).map(([at, what, more]) => html`<li key=${what}><${Time} at=${at} /> <strong>${what}</strong> <span class="soft">${more}</span></li>`)}
    </ol>
  `;
}
