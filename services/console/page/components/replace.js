// The dialog that replaces a document which this version cannot read, as a newer version wrote it. Nothing of it can be kept, so it
// is replaced as a whole and only on explicit confirmation.

import { html, useState } from "../html.js";
import { change } from "../api.js";
import { sentence } from "../formats.js";
import { Confirm } from "./dialog.js";
import { parseJson } from "./document.js";
import { notify } from "./notices.js";

/**
 * path, query: of the document in the API. why: the read error. etag: the ETag as the dialog opens. reload: fetches it again.
 * initial: text of the new spec. children: what is lost with the old document, and what stays.
 */
export function Replace({ name, path, query, why, etag: opened, reload, initial = "{}", onClose, children }) {
  const [text, setText] = useState(initial);
  const [etag, setEtag] = useState(opened);
  const act = async () => {
    try {
      return await change("PUT", path, { query, body: parseJson(text), etag });
    } catch (problem) {
      if (problem.status === 412) setEtag((await reload()).etag ?? etag);
      throw problem;
    }
  };
  const done = () => {
    notify(`Document of ${name} replaced.`);
    onClose();
    reload();
  };
  return html`
    <${Confirm} title=${`Replace the document of ${name}`} word=${name} action="Replace document" act=${act} onDone=${done} onClose=${onClose}>
      <p>This discards the whole document, including fields that a newer version added. ${children}</p>
      <p class="soft">${sentence(why)}</p>
      <label class="field"><span>New <code>spec</code>, as JSON. Fields left out use their defaults.</span>
        <textarea class="code" rows="8" spellcheck="false" value=${text} onInput=${(event) => setText(event.target.value)} />
      </label>
    <//>
  `;
}
