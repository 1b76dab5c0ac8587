// Count a queue's ready messages, ask for confirmation, and delete those that were counted.

import { html, useEffect, useState } from "../html.js";
import { at, change, read } from "../api.js";
import { useAction } from "../fetching.js";
import { several } from "../formats.js";
import { Confirm } from "./dialog.js";
import { notify } from "./notices.js";
import { ProblemBox } from "./problem.js";

export function PurgeQueue({ name, onClose, onDone }) {
  const [counted, setCounted] = useState(null);
  const route = at`queues/${name}/messages/purge`;
  const counting = useAction(async () => {
    setCounted(null);
    const { etag } = await read(at`queues/${name}`); // read first: if the queue is replaced meanwhile, the purge fails with 412
    setCounted({ ...(await change("POST", route, { body: { dryRun: true } })), etag });
  });
  useEffect(() => void counting.run(), []);
  const act = async () => {
    try {
      return await change("POST", route, { body: { until: counted.until }, etag: counted.etag });
    } catch (problem) {
      if (problem.status === 412) counting.run(); // the count is out of date
      throw problem;
    }
  };
  const done = () => {
    notify(`Purging ${name}.`, { href: "#/jobs", text: "Progress" });
    onClose();
    onDone();
  };
  return html`
    <${Confirm} title=${`Purge ${name}`} word=${name} action="Purge messages" act=${act} isBlocked=${!counted?.matched} onDone=${done} onClose=${onClose}>
      <div class="preview-box" aria-live="polite">
        <${ProblemBox} problem=${counting.problem} retry=${counting.run} />
        ${counting.isBusy && html`<p class="soft" aria-busy="true">Counting…</p>`}
        ${counted && (counted.matched ? html`<p><strong>${several(counted.matched, "ready message")}</strong> will be permanently deleted.</p>` : html`<p>The queue has no ready messages.</p>`)}
      </div>
      <p>${counted?.inFlight > 0 && html`<${InFlight} n=${counted.inFlight} />`}Messages added since the count and dead letters stay.</p>
    <//>
  `;
}

const InFlight = ({ n }) => html`
  <strong>${several(n, "message")}</strong> in flight ${n === 1 ? "stays unless it is" : "stay unless they are"} returned to the queue before the purge ends.${" "}
`;
