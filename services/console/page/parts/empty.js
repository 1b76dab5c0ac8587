// A queue's ready messages removed for good: counted, asked, and only those that were counted.

import { html, useEffect, useState } from "../html.js";
import { at, change, read } from "../api.js";
import { useDoing } from "../asking.js";
import { several } from "../formats.js";
import { Confirm } from "./dialog.js";
import { say } from "./notices.js";
import { ProblemBox } from "./problem.js";

export function EmptyQueue({ name, onClose, onDone }) {
  const [told, setTold] = useState(null);
  const route = at`queues/${name}/messages/purge`;
  const counting = useDoing(async () => {
    setTold(null);
    const { etag } = await read(at`queues/${name}`); // before: a queue that is another one by then is not the counted one
    setTold({ ...(await change("POST", route, { body: { dryRun: true } })), etag });
  });
  useEffect(() => void counting.run(), []);
  const act = async () => {
    try {
      return await change("POST", route, { body: { until: told.until }, etag: told.etag });
    } catch (problem) {
      if (problem.status === 412) counting.run(); // what is told is to be looked at
      throw problem;
    }
  };
  const done = () => {
    say(`Messages of ${name} are being removed.`, { href: "#/jobs", text: "How far" });
    onClose();
    onDone();
  };
  return html`
    <${Confirm} title=${`Empty ${name}`} word=${name} action="Remove them for good" act=${act} isBlocked=${!told?.matched} onDone=${done} onClose=${onClose}>
      <div class="preview-box" aria-live="polite">
        <${ProblemBox} problem=${counting.problem} again=${counting.run} />
        ${counting.isBusy && html`<p class="soft" aria-busy="true">Counting…</p>`}
        ${told && html`<p><strong>${several(told.matched, "message")}</strong> would be removed, and nothing brings back what is removed.</p>`}
      </div>
      <p>${told?.inFlight ? html`<strong>${several(told.inFlight, "message")}</strong> in flight would stay with whoever has them, but for those that come back before the end. ` : ""}What was put in since they were counted stays, and so do dead letters.</p>
    <//>
  `;
}
