// The dialog that creates a queue.

import { html, useState } from "../html.js";
import { at, change } from "../api.js";
import { useAction } from "../fetching.js";
import { go } from "../routes.js";
import { Dialog } from "./dialog.js";
import { parseJson } from "./document.js";
import { notify } from "./notices.js";
import { ProblemBox } from "./problem.js";

export function NewQueue({ onClose }) {
  const [name, setName] = useState("");
  const [text, setText] = useState("{}");
  const action = useAction(() => change("PUT", at`queues/${name}`, { body: parseJson(text), create: true }));
  const submit = async (event) => {
    event.preventDefault();
    if (!name || !(await action.run())) return;
    notify(`Queue ${name} created.`);
    onClose();
    go(["queues", name]);
  };
  return html`
    <${Dialog} title="New queue" onClose=${onClose}>
      <form onSubmit=${submit}>
        <label class="field">Name <input required autofocus autocomplete="off" spellcheck="false" value=${name} onInput=${(event) => setName(event.target.value)} /></label>
        <label class="field"><span>Document (<code>spec</code>, as JSON)</span>
          <textarea rows="8" spellcheck="false" class="code" value=${text} onInput=${(event) => setText(event.target.value)} />
        </label>
        <p class="soft">Fields left out use their defaults. Example: ${" "}<code>{"maxLength": 10000, "messageTTL": "1h"}</code></p>
        <${ProblemBox} problem=${action.problem} />
        <footer>
          <button type="button" onClick=${onClose}>Cancel</button>
          <button class="primary" disabled=${action.isBusy || !name}>Create</button>
        </footer>
      </form>
    <//>
  `;
}
