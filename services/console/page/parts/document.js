// Documents of queues and peers: shown as YAML, as people keep them in files, changed as JSON.

import { html, useState } from "../html.js";
import { change, Problem } from "../api.js";
import { useDoing } from "../asking.js";
import { Copy } from "./fields.js";
import { say } from "./notices.js";
import { ProblemBox } from "./problem.js";

/** What somebody typed. Throws Problem, which says where it is wrong. */
export function read(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Problem({ status: 400, title: "This is no JSON", detail: error.message });
  }
}

const PLAIN = /^[A-Za-z/_](?:[\w ./@*>#-]|:(?=\S))*$/;
const FIGURES = /^\d+(ms|s|m|h|d)$|^\d+\.\d+\.\d+\.\d+(:\d+)?$/; // durations and addresses: no numbers to YAML
const WORDS = /^(true|false|yes|no|on|off|null|~)$/i;

const isPlain = (text) =>
  FIGURES.test(text) || (PLAIN.test(text) && !WORDS.test(text) && !/[ #]$| #/.test(text));

const scalar = (value) =>
  typeof value === "string" && !isPlain(value) ? JSON.stringify(value) : String(value);

/** A value as YAML; enough of it for documents: mappings, lists and scalars. */
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

/** A mapping in a list begins on the line of its dash. */
function item(value, indent) {
  const text = yaml(value, `${indent}  `);
  return text.startsWith("\n") ? ` ${text.slice(1).trimStart()}` : text;
}

const RESOURCE = /^kubernetes (.*)$/;

/** 'shop/orders' of an owner 'kubernetes shop/orders', else null: the operator turns back what others change of it. */
export const resourceOf = (owner) => RESOURCE.exec(owner ?? "")?.[1] ?? null;

/** Said before somebody changes it. */
export const TurnedBack = ({ kind, owner }) =>
  resourceOf(owner) !== null &&
  html`<p class="lost">The ${kind} <code>${resourceOf(owner)}</code> of Kubernetes declares it: whatever is changed here the operator soon changes back. Change the resource.</p>`;

const whole = (kind, name, spec) =>
  yaml({ apiVersion: "penstock.dev/v1alpha1", kind, metadata: { name }, spec }).trimStart();

/**
 * path: of the document in the API. etag: of `spec`; both may be others at any time. onChanged: somebody is to look again.
 * mayChange: whether there is a button for it.
 */
export function DocumentView({ kind, name, spec, path, etag, mayChange, onChanged }) {
  const [edited, edit] = useState(null); // {text, etag}: of the document as it was when that began; null: only looked at
  const doing = useDoing(() => change("PUT", path, { body: read(edited.text), etag: edited.etag }));
  const begin = () => {
    doing.clear();
    edit({ text: JSON.stringify(spec, null, 2), etag });
  };
  const save = async (event) => {
    event.preventDefault();
    const done = await doing.run();
    if (done) {
      edit(null);
      say(`The document of ${name} is changed.`);
    }
    onChanged(); // also when somebody else was faster
  };
  const shown = whole(kind, name, spec);
  if (edited === null) {
    return html`
      <section class="body" aria-label="Document">
        <div class="bar"><span class="soft">As in a file of <code>penstock queue apply</code>; what is not said has its default.</span>
          <span class="right">
            <${Copy} text=${shown} />
            ${mayChange && html`<button class="small" onClick=${begin}>Change</button>`}
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
        edited.etag !== etag && !doing.isBusy
          ? html`<${Overtaken} shown=${shown} begin=${begin} />`
          : html`<${ProblemBox} problem=${doing.problem} />`
      }
      <footer class="left">
        <button type="button" onClick=${() => {
          edit(null);
          doing.clear();
        }}>Cancel</button>
        <button class="primary" disabled=${doing.isBusy}>Save</button>
      </footer>
    </form>
  `;
}

/** What is being typed is of a document that is no more: it cannot be saved, so nothing of somebody else's is lost. */
const Overtaken = ({ shown, begin }) => html`
  <div class="lost stack" role="status">
    <p>Somebody has changed the document since you began, so yours will not be saved. This is how it stands now:</p>
    <pre tabindex="0" aria-label="Document as it stands now">${shown}</pre>
    <footer class="left"><button type="button" onClick=${begin}>Begin again with this one</button></footer>
  </div>
`;
