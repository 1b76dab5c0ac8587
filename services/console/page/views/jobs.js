// Redrives, purges and emptied queues, under way and done.

import { html } from "../html.js";
import { at, change } from "../api.js";
import { useDoing, useFollowing, usePages } from "../asking.js";
import { age, count } from "../formats.js";
import { Badge, Head, More, Time } from "../parts/fields.js";
import { say } from "../parts/notices.js";
import { Empty, ProblemBox } from "../parts/problem.js";
import { Table } from "../parts/table.js";
import { href } from "../routes.js";
import { may } from "../session.js";
import { jobs } from "../state.js";

const TONES = { running: "warn", done: "good", failed: "bad", cancelled: "quiet" };

const COLUMNS = [
  {
    key: "queue",
    title: "Queue",
    isHead: true,
    cell: (job, tab) =>
      html`<a href=${href(["queues", job.queue, job.kind === "empty" ? "messages" : "dead"])} tabindex=${tab}>${job.queue}</a>${job.target && job.target !== job.queue ? html` → <a href=${href(["queues", job.target])} tabindex="-1">${job.target}</a>` : ""}`,
  },
  { key: "kind", title: "What", width: "min(5rem, 14vw)", cell: ({ kind }) => kind },
  {
    key: "state",
    title: "State",
    width: "min(6rem, 19vw)",
    cell: (job) => html`<${Badge} tone=${TONES[job.state]} title=${job.error}>${job.state}<//>`,
  },
  {
    key: "moved",
    title: "Done",
    isNumber: true,
    width: "min(11rem, 19vw)",
    cell: (job) => html`<${Progress} job=${job} />`,
  },
  {
    key: "missing",
    title: "Gone before",
    isNumber: true,
    width: "6.5rem",
    prio: 3,
    hint: "somebody else had taken them out",
    cell: ({ missing }) => count(missing),
  },
  {
    key: "started",
    title: "Started",
    width: "7rem",
    prio: 2,
    cell: (job) => html`<${Time} at=${job.startedAt} />`,
  },
  {
    key: "took",
    title: "Took",
    isNumber: true,
    width: "5rem",
    prio: 3,
    cell: (job) => job.endedAt && age(new Date(job.endedAt) - new Date(job.startedAt)),
  },
  { key: "by", title: "By", width: "7rem", prio: 3, cell: ({ by }) => by },
  {
    key: "end",
    title: html`<span class="unseen">Action</span>`,
    width: "min(5rem, 18vw)",
    cell: (job, tab) =>
      job.state === "running" && may("operate") && html`<${Cancel} job=${job} tab=${tab} />`,
  },
];

/** The stream tells of those under way and of the newest others; those that ended before are asked for. */
export function Jobs() {
  const pages = usePages("jobs", { limit: 50 });
  useFollowing(jobs.value?.map(({ id, state }) => id + state).join(), pages);
  const isKnown = jobs.value || pages.items.length > 0 || !(pages.isLoading || pages.problem);
  const known = isKnown ? together(jobs.value ?? [], pages.items) : null;
  return html`
    <${Head} title="Jobs"><p class="soft">What consoles of this store were asked to redrive, to purge, and to empty. One that is ended in the middle leaves every message whole, where it was or where it went.</p><//>
    <${ProblemBox} problem=${pages.problem} again=${pages.again} />
    ${
      known
        ? html`<${Table} label="Jobs" columns=${COLUMNS} rows=${known} keyOf=${({ id }) => id} empty=${html`<${Empty} title="Nothing has been redriven, purged or emptied lately." />`} />`
        : !pages.problem && html`<p class="soft loading" aria-busy="true">Loading…</p>`
    }
    <${More} pages=${pages} what="jobs" />
    ${(known ?? [])
      .filter(({ error }) => error)
      .slice(0, 5)
      .map(({ id, queue, state, error }) => html`<p key=${id} class="soft">${queue}, ${state}: ${error}</p>`)}
  `;
}

/** Each once, as the stream tells of it where it does; those under way before all others, and the newest before the older ones. */
function together(told, asked) {
  const known = new Map([...asked, ...told].map((job) => [job.id, job]));
  const place = ({ state, startedAt, id }) => (state === "running" ? "1" : "0") + startedAt + id;
  return [...known.values()].sort((a, b) => (place(a) < place(b) ? 1 : -1));
}

function Progress({ job: { moved, matched, state } }) {
  const isKnown = state === "running" && matched > 0;
  return html`${count(moved)}${matched != null && matched !== moved ? ` of ${count(matched)}` : ""}
    ${isKnown && html`<progress max=${matched} value=${moved} aria-label="How far">${moved}</progress>`}`;
}

function Cancel({ job, tab }) {
  const doing = useDoing(() => change("DELETE", at`jobs/${job.id}`));
  const cancel = async () => {
    if (await doing.run()) say(`The ${job.kind} of ${job.queue} ends.`);
  };
  return html`<button class="small" tabindex=${tab} disabled=${doing.isBusy} onClick=${cancel}>Cancel</button>`;
}
