// Documents of queues and peers: shown as YAML, edited as JSON.

import { html, useState } from "../html.js";
import { change, Problem } from "../api.js";
import { useAction } from "../fetching.js";
import { Copy } from "./fields.js";
import { notify } from "./notices.js";
import { ProblemBox } from "./problem.js";

/** Parse JSON typed by the user. Throws Problem with the position of the error. */
export function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Problem({ status: 400, title: "Invalid JSON", detail: error.message });
  }
}

const PLAIN = /^[A-Za-z/_](?:[\w ./@*>#-]|:(?=\S))*$/;
const DURATION_OR_ADDRESS = /^\d+(ms|s|m|h|d)$|^\d+\.\d+\.\d+\.\d+(:\d+)?$/; // strings to YAML, too
const KEYWORDS = /^(true|false|yes|no|on|off|null|~)$/i;

const isPlain = (text) =>
  DURATION_OR_ADDRESS.test(text) || (PLAIN.test(text) && !KEYWORDS.test(text) && !/[ #]$| #/.test(text));

const scalar = (value) =>
  typeof value === "string" && !isPlain(value) ? JSON.stringify(value) : String(value);

/** Format mappings, lists and scalars as YAML. */
export function yaml(value, indent = "") {
  if (Array.isArray(value)) {
    if (value.length === 0) return " []\n";
    return `\n${value.map((one) => `${indent}-${item(one, indent)}`).join("")}`;
  }
  if (value === null || typeof value !== "object") return ` ${scalar(value)}\n`;
  const members = Object.entries(value);
  if (members.length === 0) return " {}\n";
  return `\n${members.map(([name, inner]) => `${indent}${scalar(name)}:${yaml(inner, `${indent}  `)}`).join("")}`;
}

/** Format an item of a list; a mapping begins on the line of its dash. */
function item(value, indent) {
  const text = yaml(value, `${indent}  `);
  return text.startsWith("\n") ? ` ${text.slice(1).trimStart()}` : text;
}

const RESOURCE = /^kubernetes (.*)$/;

/** Return 'shop/orders' for the owner 'kubernetes shop/orders', else null. The operator reverts other changes to such documents. */
export const resourceOf = (owner) => RESOURCE.exec(owner ?? "")?.[1] ?? null;

export const ManagedByOperator = ({ kind, owner }) =>
  resourceOf(owner) !== null &&
  html`<p class="lost">Managed by the Kubernetes ${kind} <code>${resourceOf(owner)}</code>: the operator soon reverts changes made here. Change the resource instead.</p>`;

const manifest = (kind, name, spec) =>
  yaml({ apiVersion: "penstock.dev/v1alpha1", kind, metadata: { name }, spec }).trimStart();

/** path: of the document in the API. etag: of `spec`; both may change at any time. onChanged: called after each attempt to save. */
export function DocumentView({ kind, name, spec, path, etag, mayChange, onChanged }) {
  const [edited, edit] = useState(null); // {text, etag} of the document as editing began; null: not editing
  const action = useAction(() => change("PUT", path, { body: parseJson(edited.text), etag: edited.etag }));
  const begin = () => {
    action.clear();
    edit({ text: JSON.stringify(spec, null, 2), etag });
  };
  const save = async (event) => {
    event.preventDefault();
    const done = await action.run();
    if (done) {
      edit(null);
      notify(`Document of ${name} saved.`);
    }
    onChanged(); // also after a conflict
  };
  const shown = manifest(kind, name, spec);
  if (edited === null) {
    return html`
      <section class="body" aria-label="Document">
        <div class="bar"><span class="soft">The format of <code>penstock ${kind.toLowerCase()} apply</code>. Fields left out use their defaults.</span>
          <span class="right">
            <${Copy} text=${shown} />
            ${mayChange && html`<button class="small" onClick=${begin}>Edit</button>`}
          </span>
        </div>
        <pre tabindex="0" aria-label="Document as YAML">${shown}</pre>
      </section>
    `;
  }
  return html`
    <form class="stack" onSubmit=${save}>
      <label class="field"><span>The document's <code>spec</code>, as JSON</span>
        <textarea class="code" rows="18" spellcheck="false" value=${edited.text} onInput=${(event) => edit({ ...edited, text: event.target.value })} />
      </label>
      ${
        edited.etag !== etag && !action.isBusy
          ? html`<${EditConflict} shown=${shown} begin=${begin} />`
          : html`<${ProblemBox} problem=${action.problem} />`
      }
      <footer class="left">
        <button type="button" onClick=${() => {
          edit(null);
          action.clear();
        }}>Cancel</button>
        <button class="primary" disabled=${action.isBusy}>Save</button>
      </footer>
    </form>
  `;
}

/** Shown instead of saving when the document has changed, so that no other user's change is overwritten. */
const EditConflict = ({ shown, begin }) => html`
  <div class="lost stack" role="status">
    <p>Another user changed the document while you were editing, so your changes cannot be saved. The current document:</p>
    <pre tabindex="0" aria-label="Current document">${shown}</pre>
    <footer class="left"><button type="button" onClick=${begin}>Start over from this document</button></footer>
  </div>
`;
