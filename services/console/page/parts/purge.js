// Dead letters removed for good: counted, asked, and only of the queue that was counted.

import { html } from "../html.js";
import { at, change } from "../api.js";
import { Confirm } from "./dialog.js";
import { say } from "./notices.js";
import { countedOf, Preview, Scope, useSelection } from "./selection.js";

export function Purge({ queue, filter, ids, onClose, onDone }) {
  const [scope, setScope, preview] = useSelection("purge", queue, filter, ids);
  const act = async () => {
    const body = countedOf(preview, scope, ids, filter);
    try {
      return await change("POST", at`queues/${queue.name}/dead/purge`, { body, etag: preview.etag });
    } catch (problem) {
      if (problem.status === 412) preview.run(); // what is told is to be looked at
      throw problem;
    }
  };
  const done = () => {
    say(`Dead letters of ${queue.name} are being removed.`, { href: "#/jobs", text: "How far" });
    onClose();
    onDone();
  };
  return html`
    <${Confirm} title=${`Purge dead letters of ${queue.name}`} word=${queue.name} action="Remove them for good" act=${act} isBlocked=${!preview.told} onDone=${done} onClose=${onClose}>
      <${Scope} scope=${scope} setScope=${setScope} ids=${ids} filter=${filter} />
      <${Preview} preview=${preview} verb="would be removed, and nothing brings back what is removed" />
    <//>
  `;
}
