// Which dead letters are meant: those that were selected, or all that the filter lets through; and how many that are, found
// out by a dry run before anything moves.

import { html, useEffect, useRef, useState } from "../html.js";
import { at, change, read } from "../api.js";
import { useDoing, useSettled } from "../asking.js";
import { count, several } from "../formats.js";
import { ProblemBox } from "./problem.js";

/** As the API has it: ids, a filter, or all. */
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

/** What was counted, and nothing that died since. */
export const countedOf = (preview, scope, ids, filter) => ({ ...selectionOf(scope, ids, filter), until: preview.told.until });

/**
 * [scope, setScope, preview]: preview = {told: {matched, reasons}, etag, problem, isBusy}, found out anew when the scope changes,
 * or where they are to go: a queue may take none. etag: of the queue that was counted.
 */
export function useSelection(kind, queue, filter, ids, typed = "") {
  const target = useSettled(typed);
  const [scope, setScope] = useState(ids.length ? "ids" : "filter");
  const [told, setTold] = useState(null);
  const turn = useRef(0);
  const doing = useDoing(async () => {
    setTold(null);
    const mine = ++turn.current;
    const { etag } = await read(at`queues/${queue.name}`); // before: a queue that is another one by then is not the counted one
    const body = { ...selectionOf(scope, ids, filter), ...(target && { target }), dryRun: true };
    const found = await change("POST", at`queues/${queue.name}/dead/${kind}`, { body });
    if (mine === turn.current) setTold({ ...found, etag }); // else another choice was made meanwhile
  });
  useEffect(() => void doing.run(), [scope, target]);
  return [scope, setScope, { ...doing, told: target === typed ? told : null, etag: told?.etag }];
}

export function Scope({ scope, setScope, ids, filter }) {
  const isFiltered = Object.values(filter).some(Boolean);
  if (!ids.length)
    return html`<p>${isFiltered ? "All dead letters that match the filter." : "All dead letters of this queue."}</p>`;
  return html`
    <fieldset>
      <legend>Which</legend>
      <label><input type="radio" name="scope" checked=${scope === "ids"} onChange=${() => setScope("ids")} /> ${ids.length === 1 ? "This one" : `The ${count(ids.length)} that are selected`}</label>
      <label><input type="radio" name="scope" checked=${scope === "filter"} onChange=${() => setScope("filter")} /> ${isFiltered ? "All that match the filter" : "All of this queue"}</label>
    </fieldset>
  `;
}

/** What the dry run found. */
export const Preview = ({ preview, verb }) => html`
  <div class="preview-box" aria-live="polite">
    <${ProblemBox} problem=${preview.problem} again=${preview.run} />
    ${preview.isBusy && html`<p class="soft" aria-busy="true">Counting…</p>`}
    ${
      preview.told &&
      html`
      <p><strong>${preview.told.complete === false ? "At least " : ""}${several(preview.told.matched, "dead letter")}</strong> ${verb}.</p>
      ${preview.told.looked < preview.told.matched && html`<p class="soft">Of the oldest ${count(preview.told.looked)}:</p>`}
      <ul>${Object.entries(preview.told.reasons ?? {}).map(([reason, n]) => html`<li key=${reason}><span class="n">${count(n)}</span> ${reason}</li>`)}</ul>
    `
    }
  </div>
`;
