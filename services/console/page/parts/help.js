// What the keyboard can do.

import { html } from "../html.js";
import { helpIsOpen, PLACES } from "../keys.js";
import { Dialog } from "./dialog.js";

const KEYS = [
  ["/", "go to the filter of the page"],
  ["↓ ↑", "next and previous row of a table, also j and k; ↓ in the filter: the first"],
  ["Home End", "first and last row"],
  ["Enter", "open the row"],
  ["Space", "select the row, where rows can be selected"],
  ["Esc", "close what is open"],
  ["?", "this help"],
];

export const Help = () => html`
  <${Dialog} title="Keyboard" isWide onClose=${() => (helpIsOpen.value = false)}>
    <div class="columns">
      <dl class="keys">${KEYS.map(([keys, text]) => html`<div key=${keys}><dt>${keys.split(" ").map((key) => html`<kbd>${key}</kbd> `)}</dt><dd>${text}</dd></div>`)}</dl>
      <dl class="keys">${PLACES.map(([letter, , title]) => html`<div key=${letter}><dt><kbd>g</kbd> <kbd>${letter}</kbd></dt><dd>${title}</dd></div>`)}</dl>
    </div>
    <p class="soft">
      Addresses of views, with their filters, can be bookmarked and sent to others. The same can be done by programs:
      ${" "}<a href="api/v1/openapi.json" target="_blank" rel="noopener">the API's document</a>.
    </p>
  <//>
`;
