// Modal dialogs: the browser's own element, which keeps the focus and closes with Escape. The focus then returns to the element
// that had it.

import { html, useEffect, useRef, useState } from "../html.js";
import { useAction } from "../fetching.js";
import { isTypeable, visibleName } from "../names.js";
import { ProblemBox } from "./problem.js";

const FALLBACK_WORD = "delete"; // where the name cannot be typed

let number = 0;

export function Dialog({ title, onClose, isWide, children }) {
  const dialog = useRef(null);
  const [id] = useState(() => `dialog-${++number}`);
  useEffect(() => {
    const shown = dialog.current;
    const opener = document.activeElement;
    shown.showModal();
    return () => {
      shown.close();
      opener.focus(); // the element is removed before the browser would do it
    };
  }, []);
  const close = (event) => {
    event.preventDefault();
    onClose();
  };
  return html`
    <dialog ref=${dialog} class=${isWide ? "wide" : ""} aria-labelledby=${id} onCancel=${close}>
      <header>
        <h2 id=${id}>${visibleName(title)}</h2>
        <button class="quiet" aria-label="Close" onClick=${onClose}>×</button>
      </header>
      ${children}
    </dialog>
  `;
}

/**
 * Ask before an action that cannot be undone. word: the word to type first; act: performs the action, may throw Problem; children: what
 * will happen. After a 412 the word has to be typed again, as the target is no longer what the user saw.
 */
export function Confirm({ title, word: wanted, action, act, isBlocked, onDone, onClose, children }) {
  const [typed, setTyped] = useState("");
  const confirmed = useAction(act);
  const word = wanted && !isTypeable(wanted) ? FALLBACK_WORD : wanted;
  const isReady = !isBlocked && (!word || typed === word);
  useEffect(() => {
    if (confirmed.problem?.status === 412) setTyped("");
  }, [confirmed.problem]);
  const submit = async (event) => {
    event.preventDefault();
    if (!isReady || confirmed.isBusy) return;
    const done = await confirmed.run();
    if (done) onDone(done);
  };
  return html`
    <${Dialog} title=${title} onClose=${onClose}>
      <form onSubmit=${submit}>
        <div class="stack">${children}</div>
        ${
          word &&
          html`<label class="field"
          ><span>Type <code>${word}</code> to confirm</span>
          <input
            autocomplete="off"
            spellcheck="false"
            autofocus
            value=${typed}
            onInput=${(event) => setTyped(event.target.value)}
        /></label>`
        }
        <${ProblemBox} problem=${confirmed.problem} />
        <footer>
          <button type="button" onClick=${onClose}>Cancel</button>
          <button class="danger" disabled=${!isReady || confirmed.isBusy}>${confirmed.isBusy ? "Working…" : action}</button>
        </footer>
      </form>
    <//>
  `;
}
