// Short-lived notices in a corner, also announced to screen readers.

import { html, signal } from "../html.js";
import { visibleName } from "../names.js";

const SHOWN_MS = 7000;
const notices = signal([]);
let number = 0;

const remove = (id) => (notices.value = notices.value.filter((each) => each.id !== id));

/** Show a notice for some seconds. link: {href, text}, for details. */
export function notify(text, link = null) {
  const id = ++number;
  notices.value = [...notices.value.slice(-3), { id, text, link }];
  setTimeout(remove, SHOWN_MS, id);
}

export const Notices = () => html`
  <div class="notices" role="status" aria-live="polite">
    ${notices.value.map(
      ({ id, text, link }) => html`
        <p key=${id} class="notice">
          <span>${visibleName(text)} ${link && html`<a href=${link.href}>${link.text}</a>`}</span>
          <button class="quiet" aria-label="Dismiss" onClick=${() => remove(id)}>×</button>
        </p>
      `,
    )}
  </div>
`;
