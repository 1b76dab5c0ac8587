// The list of keyboard shortcuts.

import { html } from "../html.js";
import { helpIsOpen, SHORTCUTS } from "../keys.js";
import { Dialog } from "./dialog.js";

const KEYS = [
  ["/", "focus the filter"],
  ["↓ ↑", "next and previous row, also j and k; ↓ in the filter: first row"],
  ["Home End", "first and last row"],
  ["Enter", "open the row"],
  ["Space", "select the row"],
  ["Esc", "close the dialog"],
  ["?", "show this help"],
];

export const Help = () => html`
  <${Dialog} title="Keyboard shortcuts" isWide onClose=${() => (helpIsOpen.value = false)}>
    <div class="columns">
      <dl class="keys">${KEYS.map(([keys, text]) => html`<div key=${keys}><dt>${keys.split(" ").map((key) => html`<kbd>${key}</kbd> `)}</dt><dd>${text}</dd></div>`)}</dl>
      <dl class="keys">${SHORTCUTS.map(([letter, , title]) => html`<div key=${letter}><dt><kbd>g</kbd> <kbd>${letter}</kbd></dt><dd>${title}</dd></div>`)}</dl>
    </div>
    <p class="soft">
      Views and their filters are in the address, so you can bookmark and share them. For programs, there is the
      ${" "}<a href="api/v1/openapi.json" target="_blank" rel="noopener">OpenAPI document</a>.
    </p>
  <//>
`;
