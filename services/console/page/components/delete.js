// Confirm and delete a queue or a peer, provided that its document is the one the user saw.

import { html, useState } from "../html.js";
import { change } from "../api.js";
import { go } from "../routes.js";
import { Confirm } from "./dialog.js";
import { notify } from "./notices.js";

/**
 * what: 'Queue'. path: of the document. etag: its ETag as the dialog opens; a newer one is used after the dialog has shown the change.
 * reload: fetches the document again. back: the route to show afterwards. children: what else is deleted.
 */
export function Delete({ what, name, path, etag: opened, reload, back, onClose, children }) {
  const [etag, setEtag] = useState(opened);
  const act = async () => {
    try {
      return await change("DELETE", path, { etag });
    } catch (problem) {
      if (problem.status === 412) setEtag((await reload()).etag ?? etag);
      throw problem;
    }
  };
  const done = () => {
    notify(`${what} ${name} deleted.`);
    onClose();
    go(back);
  };
  return html`
    <${Confirm} title=${`Delete ${name}`} word=${name} action=${`Delete ${what.toLowerCase()}`} act=${act} onDone=${done} onClose=${onClose}>${children}<//>
  `;
}
