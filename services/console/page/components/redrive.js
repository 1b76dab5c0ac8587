// The dialog that redrives dead letters: counts them first, then starts the job.

import { html, useState } from "../html.js";
import { at, change } from "../api.js";
import { useAction } from "../fetching.js";
import { count } from "../formats.js";
import { queueList } from "../state.js";
import { Dialog } from "./dialog.js";
import { notify } from "./notices.js";
import { ProblemBox } from "./problem.js";
import { countedSelection, Preview, Scope, useSelection } from "./selection.js";

export function Redrive({ queue, filter, ids, onClose, onDone }) {
  const [target, setTarget] = useState("");
  const [rate, setRate] = useState("");
  const [scope, setScope, preview] = useSelection("redrive", queue, filter, ids, target);
  const action = useAction(() => {
    const body = {
      ...countedSelection(preview, scope, ids, filter),
      ...(target && { target }),
      ...(rate && { rate: Number(rate) }),
    };
    return change("POST", at`queues/${queue.name}/dead/redrive`, { body });
  });
  const submit = async (event) => {
    event.preventDefault();
    if (!(await action.run())) return;
    notify(`Redriving dead letters to ${target || queue.name}.`, { href: "#/jobs", text: "Progress" });
    onClose();
    onDone();
  };
  const n = preview.counted?.matched ?? 0;
  return html`
    <${Dialog} title=${`Redrive dead letters of ${queue.name}`} onClose=${onClose}>
      <form onSubmit=${submit}>
        <${Scope} scope=${scope} setScope=${setScope} ids=${ids} filter=${filter} />
        <${Preview} preview=${preview} verb=${`will be moved to the end of ${target || queue.name}`} />
        <div class="twin">
          <label class="field">Target queue <input list="targets" spellcheck="false" autocomplete="off" placeholder=${queue.name} value=${target} onInput=${(event) => setTarget(event.target.value)} /></label>
          <label class="field">Rate limit, messages/s <input type="number" min="1" step="1" placeholder="unlimited" value=${rate} onInput=${(event) => setRate(event.target.value)} /></label>
        </div>
        <datalist id="targets">${queueList.value.filter(({ domain, name }) => domain === queue.domain && name !== queue.name).map(({ name }) => html`<option key=${name} value=${name} />`)}</datalist>
        <${ProblemBox} problem=${action.problem} />
        <footer>
          <button type="button" onClick=${onClose}>Cancel</button>
          <button class="primary" disabled=${action.isBusy || n === 0}>${n ? `Redrive ${count(n)}` : "Redrive"}</button>
        </footer>
      </form>
    <//>
  `;
}
