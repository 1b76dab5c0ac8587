// The dialog that publishes a message, typed or from a file.

import { html, useState } from "../html.js";
import { at, change, Problem } from "../api.js";
import { useAction } from "../fetching.js";
import { encode } from "../bodies.js";
import { bytes } from "../formats.js";
import { Dialog } from "./dialog.js";
import { notify } from "./notices.js";
import { ProblemBox } from "./problem.js";

/** Parse attributes, one 'name: value' per line. Throws Problem. */
export function parseAttributes(text) {
  const lines = text.split("\n").filter((line) => line.trim());
  return Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(":");
      if (colon < 1) {
        throw new Problem({
          status: 400,
          title: "Invalid attribute",
          detail: `expected name: value, got ${line}`,
          advice: "Write each attribute on a line of its own.",
        });
      }
      return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
    }),
  );
}

export function Publish({ name, onClose, onDone }) {
  const [text, setText] = useState("");
  const [file, setFile] = useState(null); // {name, octets}
  const [attributes, setAttributes] = useState("");
  const action = useAction(() => {
    const body = file ? { bodyBase64: encode(file.octets) } : { body: text };
    const parsed = parseAttributes(attributes);
    return change("POST", at`queues/${name}/messages`, {
      body: { ...body, ...(Object.keys(parsed).length ? { attributes: parsed } : {}) },
    });
  });
  const pick = async (event) => {
    const [chosen] = event.target.files;
    setFile(chosen ? { name: chosen.name, octets: new Uint8Array(await chosen.arrayBuffer()) } : null);
  };
  const submit = async (event) => {
    event.preventDefault();
    if (!(await action.run())) return;
    notify(`Message published to ${name}.`);
    onDone();
    onClose();
  };
  return html`
    <${Dialog} title=${`Publish to ${name}`} isWide onClose=${onClose}>
      <form onSubmit=${submit}>
        ${
          file
            ? html`<p>Body: file <strong>${file.name}</strong>, ${bytes(file.octets.length)}. <button type="button" class="small" onClick=${() => setFile(null)}>Type the body instead</button></p>`
            : html`<label class="field">Body <textarea class="code" rows="8" autofocus spellcheck="false" value=${text} onInput=${(event) => setText(event.target.value)} /></label>
              <label class="field">or a file <input type="file" onChange=${pick} /></label>`
        }
        <label class="field"><span>Attributes, one <code>name: value</code> per line</span>
          <textarea class="code" rows="2" spellcheck="false" value=${attributes} onInput=${(event) => setAttributes(event.target.value)} />
        </label>
        <${ProblemBox} problem=${action.problem} />
        <footer>
          <button type="button" onClick=${onClose}>Cancel</button>
          <button class="primary" disabled=${action.isBusy}>${action.isBusy ? "Publishing…" : "Publish"}</button>
        </footer>
      </form>
    <//>
  `;
}
