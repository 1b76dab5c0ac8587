// Questions in front of the page: the browser's own dialog, which keeps the focus, and closes by Escape.
// Whoever opened it has the focus again afterwards.

import { html, useEffect, useRef, useState } from "../html.js";
import { useDoing } from "../asking.js";
import { isTypable, seen } from "../names.js";
import { ProblemBox } from "./problem.js";

const ANY_WORD = "delete";

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
      opener.focus(); // the dialog is gone from the page before the browser would do it
    };
  }, []);
  const close = (event) => {
    event.preventDefault();
    onClose();
  };
  return html`
    <dialog ref=${dialog} class=${isWide ? "wide" : ""} aria-labelledby=${id} onCancel=${close}>
      <header>
        <h2 id=${id}>${seen(title)}</h2>
        <button class="quiet" aria-label="Close" onClick=${onClose}>×</button>
      </header>
      ${children}
    </dialog>
  `;
}

/**
 * Asks before something is done that cannot be undone. word: what has to be typed first, if it can be typed; act: does it, and may throw
 * Problem; children: what is about to happen. Where somebody has changed it meanwhile (412) the word is to be typed again: it was
 * meant for something else.
 */
export function Confirm({ title, word: wanted, action, act, isBlocked, onDone, onClose, children }) {
  const [typed, setTyped] = useState("");
  const doing = useDoing(act);
  const word = wanted && !isTypable(wanted) ? ANY_WORD : wanted;
  const isReady = !isBlocked && (!word || typed === word);
  useEffect(() => {
    if (doing.problem?.status === 412) setTyped("");
  }, [doing.problem]);
  const submit = async (event) => {
    event.preventDefault();
    if (!isReady || doing.isBusy) return;
    const done = await doing.run();
    if (done) onDone(done);
  };
  return html`
    <${Dialog} title=${title} onClose=${onClose}>
      <form onSubmit=${submit}>
        <div class="stack">${children}</div>
        ${
          word &&
          html`<label class="field"
          ><span>To go on, type <code>${word}</code></span>
          <input
            autocomplete="off"
            spellcheck="false"
            autofocus
            value=${typed}
            onInput=${(event) => setTyped(event.target.value)}
        /></label>`
        }
        <${ProblemBox} problem=${doing.problem} />
        <footer>
          <button type="button" onClick=${onClose}>Cancel</button>
          <button class="danger" disabled=${!isReady || doing.isBusy}>${doing.isBusy ? "Working…" : action}</button>
        </footer>
      </form>
    <//>
  `;
}
