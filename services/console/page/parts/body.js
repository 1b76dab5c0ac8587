// A body as text, JSON or hex. Scripts in it are as harmless as any other letters: they are text nodes.

import { html, useMemo, useState } from "../html.js";
import { decode, hexRows, isJson, kind, layOut, shown, utf8, visible } from "../bodies.js";
import { bytes } from "../formats.js";
import { Copy } from "./fields.js";

const VIEWS = [
  ["text", "Text"],
  ["json", "JSON"],
  ["hex", "Hex"],
];

/** size: of the whole body, octets. more: what else can be done with it. Nothing is looked at again because figures
 * beside it moved: it may have 16 MiB. */
export function BodyView({ base64, size, more }) {
  const octets = useMemo(() => decode(base64), [base64]);
  const isCut = octets.length < size;
  const part = useMemo(() => shown(octets), [octets]);
  const text = useMemo(() => utf8(octets, isCut), [octets, isCut]);
  const best = useMemo(() => kind(part, isCut || part.length < octets.length), [octets, isCut]);
  const [chosen, choose] = useState(null);
  const view = chosen ?? best;
  const looked = useMemo(() => html`<${SHOWN[view]} octets=${part} />`, [view, part]);
  return html`
    <div class="body" role="group" aria-label="Body">
      <div class="bar">
        <div class="choice" role="group" aria-label="How the body is shown">
          ${VIEWS.map(
            ([name, text]) =>
              html`<button key=${name} aria-pressed=${view === name ? "true" : "false"} onClick=${() => choose(name)}>${text}</button>`,
          )}
        </div>
        <span class="soft">${bytes(size)}</span>
        <span class="right">${text !== null && html`<${Copy} text=${text} />`} ${more}</span>
      </div>
      ${
        (isCut || part.length < octets.length) &&
        html`<p class="soft">Only the first ${bytes(part.length)} are shown.</p>`
      }
      ${size === 0 ? html`<p class="soft">The body is empty.</p>` : looked}
    </div>
  `;
}

const Text = ({ octets }) => html`<pre tabindex="0" aria-label="Body as text">${visible(octets)}</pre>`;

function Json({ octets }) {
  const text = utf8(octets);
  if (text === null || !isJson(text)) {
    return html`<p class="soft">This is no JSON, or not all of it is here.</p>
      <${Text} octets=${octets} />`;
  }
  return html`<pre tabindex="0" aria-label="Body as JSON">${layOut(text).map(([kind, part]) => (kind === "plain" ? part : html`<span class=${`j-${kind}`}>${part}</span>`))}</pre>`;
}

function Hex({ octets }) {
  const width = innerWidth < 640 ? 8 : 16;
  const rows = hexRows(octets, width).map(
    ([at, hex, text]) => `${width === 8 ? at.slice(4) : at}  ${hex}  ${text}`,
  );
  return html`<pre tabindex="0" class="hex" aria-label="Body as hex">${rows.join("\n")}</pre>`;
}

const SHOWN = { text: Text, json: Json, hex: Hex };

export const Attributes = ({ attributes }) => {
  const all = Object.entries(attributes ?? {});
  return (
    all.length > 0 &&
    html`<table class="plain">
      <caption>
        Attributes
      </caption>
      <tbody>
        ${all.map(
          ([name, value]) =>
            html`<tr key=${name}><th scope="row">${name}</th><td>${typeof value === "string" ? value : JSON.stringify(value)}</td></tr>`,
        )}
      </tbody>
    </table>`
  );
};
