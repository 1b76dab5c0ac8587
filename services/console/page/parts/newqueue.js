// A new queue: its name, and what differs from the defaults.

import { html, useState } from "../html.js";
import { at, change } from "../api.js";
import { useDoing } from "../asking.js";
import { go } from "../routes.js";
import { Dialog } from "./dialog.js";
import { read as readSpec } from "./document.js";
import { say } from "./notices.js";
import { ProblemBox } from "./problem.js";

const EXAMPLE = "{}";

export function NewQueue({ onClose }) {
  const [name, setName] = useState("");
  const [text, setText] = useState(EXAMPLE);
  const doing = useDoing(() => change("PUT", at`queues/${name}`, { body: readSpec(text), create: true }));
  const submit = async (event) => {
    event.preventDefault();
    if (!name || !(await doing.run())) return;
    say(`Queue ${name} is there.`);
    onClose();
    go(["queues", name]);
  };
  return html`
    <${Dialog} title="New queue" onClose=${onClose}>
      <form onSubmit=${submit}>
        <label class="field">Name <input required autofocus autocomplete="off" spellcheck="false" value=${name} onInput=${(event) => setName(event.target.value)} /></label>
        <label class="field"
          >Document (<code>spec</code>, as JSON)
          <textarea rows="8" spellcheck="false" class="code" value=${text} onInput=${(event) => setText(event.target.value)} />
        </label>
        <p class="soft">What is not said has its default. For example ${" "}<code>{"maxLength": 10000, "messageTTL": "1h"}</code></p>
        <${ProblemBox} problem=${doing.problem} />
        <footer>
          <button type="button" onClick=${onClose}>Cancel</button>
          <button class="primary" disabled=${doing.isBusy || !name}>Create</button>
        </footer>
      </form>
    <//>
  `;
}
