// Dead letters back into their queue, or into another one: first counted, then moved at the pace that is wanted.

import { html, useState } from "../html.js";
import { at, change } from "../api.js";
import { useDoing } from "../asking.js";
import { count } from "../formats.js";
import { queueList } from "../state.js";
import { Dialog } from "./dialog.js";
import { say } from "./notices.js";
import { ProblemBox } from "./problem.js";
import { countedOf, Preview, Scope, useSelection } from "./selection.js";

export function Redrive({ queue, filter, ids, onClose, onDone }) {
  const [target, setTarget] = useState("");
  const [rate, setRate] = useState("");
  const [scope, setScope, preview] = useSelection("redrive", queue, filter, ids, target);
  const doing = useDoing(() => {
    const body = {
      ...countedOf(preview, scope, ids, filter),
      ...(target && { target }),
      ...(rate && { rate: Number(rate) }),
    };
    return change("POST", at`queues/${queue.name}/dead/redrive`, { body });
  });
  const submit = async (event) => {
    event.preventDefault();
    if (!(await doing.run())) return;
    say(`Dead letters go back to ${target || queue.name}.`, { href: "#/jobs", text: "How far" });
    onClose();
    onDone();
  };
  const n = preview.told?.matched ?? 0;
  return html`
    <${Dialog} title=${`Redrive dead letters of ${queue.name}`} onClose=${onClose}>
      <form onSubmit=${submit}>
        <${Scope} scope=${scope} setScope=${setScope} ids=${ids} filter=${filter} />
        <${Preview} preview=${preview} verb=${`would go back to the end of ${target || queue.name}`} />
        <div class="twin">
          <label class="field">Into <input list="targets" spellcheck="false" autocomplete="off" placeholder=${queue.name} value=${target} onInput=${(event) => setTarget(event.target.value)} /></label>
          <label class="field">At most, a second <input type="number" min="1" step="1" placeholder="as fast as it goes" value=${rate} onInput=${(event) => setRate(event.target.value)} /></label>
        </div>
        <datalist id="targets">${queueList.value.filter(({ domain, name }) => domain === queue.domain && name !== queue.name).map(({ name }) => html`<option key=${name} value=${name} />`)}</datalist>
        <${ProblemBox} problem=${doing.problem} />
        <footer>
          <button type="button" onClick=${onClose}>Cancel</button>
          <button class="primary" disabled=${doing.isBusy || n === 0}>${n ? `Redrive ${count(n)}` : "Redrive"}</button>
        </footer>
      </form>
    <//>
  `;
}
