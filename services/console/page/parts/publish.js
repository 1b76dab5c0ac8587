// A message into a queue: typed, or a file; with attributes if there are any.

import { html, useState } from "../html.js";
import { at, change, Problem } from "../api.js";
import { useDoing } from "../asking.js";
import { encode } from "../bodies.js";
import { bytes } from "../formats.js";
import { Dialog } from "./dialog.js";
import { say } from "./notices.js";
import { ProblemBox } from "./problem.js";

/** 'a: 1' a line → {a: '1'}. Throws Problem. */
export function attributesOf(text) {
  const lines = text.split("\n").filter((line) => line.trim());
  return Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(":");
      if (colon < 1) {
        throw new Problem({
          status: 400,
          title: "Attributes",
          detail: `write a name, a colon and a value: ${line}`,
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
  const doing = useDoing(() => {
    const body = file ? { bodyBase64: encode(file.octets) } : { body: text };
    const said = attributesOf(attributes);
    return change("POST", at`queues/${name}/messages`, {
      body: { ...body, ...(Object.keys(said).length ? { attributes: said } : {}) },
    });
  });
  const pick = async (event) => {
    const [chosen] = event.target.files;
    setFile(chosen ? { name: chosen.name, octets: new Uint8Array(await chosen.arrayBuffer()) } : null);
  };
  const submit = async (event) => {
    event.preventDefault();
    if (!(await doing.run())) return;
    say(`The message is in ${name}.`);
    onDone();
    onClose();
  };
  return html`
    <${Dialog} title=${`Publish to ${name}`} isWide onClose=${onClose}>
      <form onSubmit=${submit}>
        ${
          file
            ? html`<p>The body is the file <strong>${file.name}</strong>, ${bytes(file.octets.length)}. <button type="button" class="small" onClick=${() => setFile(null)}>Type it instead</button></p>`
            : html`<label class="field">Body <textarea class="code" rows="8" autofocus spellcheck="false" value=${text} onInput=${(event) => setText(event.target.value)} /></label>
              <label class="field">or a file <input type="file" onChange=${pick} /></label>`
        }
        <label class="field"><span>Attributes, <code>name: value</code> a line</span>
          <textarea class="code" rows="2" spellcheck="false" value=${attributes} onInput=${(event) => setAttributes(event.target.value)} />
        </label>
        <${ProblemBox} problem=${doing.problem} />
        <footer>
          <button type="button" onClick=${onClose}>Cancel</button>
          <button class="primary" disabled=${doing.isBusy}>${doing.isBusy ? "Publishing…" : "Publish"}</button>
        </footer>
      </form>
    <//>
  `;
}
