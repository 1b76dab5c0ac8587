// The end of a queue or a peer: asked for by name, and only of the document that was there when that was asked.

import { html, useState } from "../html.js";
import { change } from "../api.js";
import { go } from "../routes.js";
import { Confirm } from "./dialog.js";
import { say } from "./notices.js";

/**
 * what: 'Queue'. path: of the document. seen: its ETag as this opens; another one counts only once somebody was told of it.
 * again: asks for the document anew. back: the route where one is afterwards. children: what goes with it.
 */
export function Delete({ what, name, path, seen, again, back, action = "Delete it", onClose, children }) {
  const [etag, setEtag] = useState(seen);
  const act = async () => {
    try {
      return await change("DELETE", path, { etag });
    } catch (problem) {
      if (problem.status === 412) setEtag((await again()).etag ?? etag);
      throw problem;
    }
  };
  const done = () => {
    say(`${what} ${name} is deleted.`);
    onClose();
    go(back);
  };
  return html`
    <${Confirm} title=${`Delete ${name}`} word=${name} action=${action} act=${act} onDone=${done} onClose=${onClose}>${children}<//>
  `;
}
