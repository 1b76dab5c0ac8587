// Show a body as text, JSON or hex. It becomes text nodes, so scripts in it never run.

import { html, useMemo, useState } from "../html.js";
import { decode, hexRows, isJson, kind, indentJson, shown, utf8, visible } from "../bodies.js";
import { bytes } from "../formats.js";
import { Copy } from "./fields.js";

const VIEWS = [
  ["text", "Text"],
  ["json", "JSON"],
  ["hex", "Hex"],
];

/**
 * size: octets of the whole body. more: further buttons. Everything is memoised, as a body may have 16 MiB and figures beside it
 * change every few seconds.
 */
export function BodyView({ base64, size, more }) {
  const octets = useMemo(() => decode(base64), [base64]);
  const isCut = octets.length < size;
  const part = useMemo(() => shown(octets), [octets]);
  const text = useMemo(() => utf8(octets, isCut), [octets, isCut]);
  const best = useMemo(() => kind(part, isCut || part.length < octets.length), [octets, isCut]);
  const [chosen, choose] = useState(null);
  const view = chosen ?? best;
  const content = useMemo(() => html`<${FORMATS[view]} octets=${part} />`, [view, part]);
  return html`
    <div class="body" role="group" aria-label="Body">
      <div class="bar">
        <div class="choice" role="group" aria-label="Format of the body">
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
        html`<p class="soft">Showing the first ${bytes(part.length)}.</p>`
      }
      ${size === 0 ? html`<p class="soft">The body is empty.</p>` : content}
    </div>
  `;
}

const Text = ({ octets }) => html`<pre tabindex="0" aria-label="Body as text">${visible(octets)}</pre>`;

function Json({ octets }) {
  const text = utf8(octets);
  if (text === null || !isJson(text)) {
    return html`<p class="soft">The body is not valid JSON, or is truncated.</p>
      <${Text} octets=${octets} />`;
  }
  return html`<pre tabindex="0" aria-label="Body as JSON">${indentJson(text).map(([kind, part]) => (kind === "plain" ? part : html`<span class=${`j-${kind}`}>${part}</span>`))}</pre>`;
}

function Hex({ octets }) {
  const width = innerWidth < 640 ? 8 : 16;
  const rows = hexRows(octets, width).map(
    ([at, hex, text]) => `${width === 8 ? at.slice(4) : at}  ${hex}  ${text}`,
  );
  return html`<pre tabindex="0" class="hex" aria-label="Body as hex">${rows.join("\n")}</pre>`;
}

const FORMATS = { text: Text, json: Json, hex: Hex };

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
