// Which dead letters a redrive or purge affects: the selected ones, or all that match the filter. A dry run counts them first.

import { html, useEffect, useRef, useState } from "../html.js";
import { at, change, read } from "../api.js";
import { useAction, useDebounced } from "../fetching.js";
import { count, several } from "../formats.js";
import { ProblemBox } from "./problem.js";

/** Build the API's selection: ids, a filter, or all. */
export function selectionOf(scope, ids, { reason, origin, olderThan, body }) {
  if (scope === "ids") return { ids };
  const filter = {
    ...(reason && { reasons: [reason] }),
    ...(origin && { origin }),
    ...(olderThan && { olderThan }),
    ...(body && { body }),
  };
  return Object.keys(filter).length ? { filter } : { all: true };
}

/** Return the selection limited to what was counted; later dead letters are left out. */
export const countedSelection = (preview, scope, ids, filter) => ({ ...selectionOf(scope, ids, filter), until: preview.counted.until });

/**
 * Return [scope, setScope, preview]; preview = {counted: {matched, reasons, until}, etag, problem, isBusy}, counted again when the scope
 * or the target changes, as a target may refuse messages. etag: of the queue that was counted.
 */
export function useSelection(kind, queue, filter, ids, typed = "") {
  const target = useDebounced(typed);
  const [scope, setScope] = useState(ids.length ? "ids" : "filter");
  const [counted, setCounted] = useState(null);
  const turn = useRef(0);
  const action = useAction(async () => {
    setCounted(null);
    const mine = ++turn.current;
    const { etag } = await read(at`queues/${queue.name}`); // read first: if the queue is replaced meanwhile, the purge fails with 412
    const body = { ...selectionOf(scope, ids, filter), ...(target && { target }), dryRun: true };
    const found = await change("POST", at`queues/${queue.name}/dead/${kind}`, { body });
    if (mine === turn.current) setCounted({ ...found, etag }); // else a newer count is running
  });
  useEffect(() => void action.run(), [scope, target]);
  return [scope, setScope, { ...action, counted: target === typed ? counted : null, etag: counted?.etag }];
}

export function Scope({ scope, setScope, ids, filter }) {
  const isFiltered = Object.values(filter).some(Boolean);
  if (!ids.length)
    return html`<p>${isFiltered ? "All dead letters that match the filter." : "All dead letters of this queue."}</p>`;
  return html`
    <fieldset>
      <legend>Scope</legend>
      <label><input type="radio" name="scope" checked=${scope === "ids"} onChange=${() => setScope("ids")} /> ${ids.length === 1 ? "The selected dead letter" : `The ${count(ids.length)} selected dead letters`}</label>
      <label><input type="radio" name="scope" checked=${scope === "filter"} onChange=${() => setScope("filter")} /> ${isFiltered ? "All dead letters that match the filter" : "All dead letters of this queue"}</label>
    </fieldset>
  `;
}

/** The result of the dry run. */
export const Preview = ({ preview, verb }) => html`
  <div class="preview-box" aria-live="polite">
    <${ProblemBox} problem=${preview.problem} retry=${preview.run} />
    ${preview.isBusy && html`<p class="soft" aria-busy="true">Counting…</p>`}
    ${
      preview.counted &&
      html`
      <p><strong>${preview.counted.complete === false ? "At least " : ""}${several(preview.counted.matched, "dead letter")}</strong> ${verb}.</p>
      ${preview.counted.looked < preview.counted.matched && html`<p class="soft">Reasons of the oldest ${count(preview.counted.looked)}:</p>`}
      <ul>${Object.entries(preview.counted.reasons ?? {}).map(([reason, n]) => html`<li key=${reason}><span class="n">${count(n)}</span> ${reason}</li>`)}</ul>
    `
    }
  </div>
`;
