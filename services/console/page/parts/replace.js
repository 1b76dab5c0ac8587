// A document of a queue or a peer that this version cannot read, as a newer one wrote it: nothing of it can be kept, so it is only
// replaced as a whole, and by whoever says so.

import { html, useState } from "../html.js";
import { change } from "../api.js";
import { Confirm } from "./dialog.js";
import { read } from "./document.js";
import { say } from "./notices.js";

/**
 * path: of the document in the API, and what it is asked beside. seen: the ETag as this opens. again: asks for it anew. first: what
 * the spec begins as. children: what is gone with the old one, and what stays.
 */
export function Replace({ name, path, query, why, seen, again, first = "{}", onClose, children }) {
  const [text, setText] = useState(first);
  const [etag, setEtag] = useState(seen);
  const act = async () => {
    try {
      return await change("PUT", path, { query, body: read(text), etag });
    } catch (problem) {
      if (problem.status === 412) setEtag((await again()).etag ?? etag);
      throw problem;
    }
  };
  const done = () => {
    say(`The document of ${name} is replaced.`);
    onClose();
    again();
  };
  return html`
    <${Confirm} title=${`Replace the document of ${name}`} word=${name} action="Replace it" act=${act} onDone=${done} onClose=${onClose}>
      <p>Whatever the document says is gone then, also what a newer version wrote there on purpose. ${children}</p>
      <p class="soft">${why}</p>
      <label class="field"><span>The new <code>spec</code>, as JSON; what is not said has its default</span>
        <textarea class="code" rows="8" spellcheck="false" value=${text} onInput=${(event) => setText(event.target.value)} />
      </label>
    <//>
  `;
}
