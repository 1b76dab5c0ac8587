// Count dead letters, ask for confirmation, and delete those that were counted.

import { html } from "../html.js";
import { at, change } from "../api.js";
import { Confirm } from "./dialog.js";
import { notify } from "./notices.js";
import { countedSelection, Preview, Scope, useSelection } from "./selection.js";

export function Purge({ queue, filter, ids, onClose, onDone }) {
  const [scope, setScope, preview] = useSelection("purge", queue, filter, ids);
  const act = async () => {
    const body = countedSelection(preview, scope, ids, filter);
    try {
      return await change("POST", at`queues/${queue.name}/dead/purge`, { body, etag: preview.etag });
    } catch (problem) {
      if (problem.status === 412) preview.run(); // the count is out of date
      throw problem;
    }
  };
  const done = () => {
    notify(`Purging dead letters of ${queue.name}.`, { href: "#/jobs", text: "Progress" });
    onClose();
    onDone();
  };
  return html`
    <${Confirm} title=${`Purge dead letters of ${queue.name}`} word=${queue.name} action="Purge dead letters" act=${act} isBlocked=${!preview.counted} onDone=${done} onClose=${onClose}>
      <${Scope} scope=${scope} setScope=${setScope} ids=${ids} filter=${filter} />
      <${Preview} preview=${preview} verb="will be permanently deleted" />
    <//>
  `;
}
