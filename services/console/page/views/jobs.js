// Jobs: redrives and purges, running and finished.

import { html } from "../html.js";
import { at, change } from "../api.js";
import { useAction, useAutoRefresh, usePages } from "../fetching.js";
import { age, count } from "../formats.js";
import { Badge, Head, LoadMore, Time } from "../components/fields.js";
import { notify } from "../components/notices.js";
import { Empty, ProblemBox } from "../components/problem.js";
import { Table } from "../components/table.js";
import { href } from "../routes.js";
import { may } from "../session.js";
import { jobs } from "../state.js";

const KINDS = { redrive: "redrive", purge: "dead letter purge", empty: "queue purge" };
const TONES = { running: "warn", done: "good", failed: "bad", cancelled: "quiet" };

/** The column of buttons is there only if a job is running. */
const columns = (rows) => COLUMNS.filter(({ key }) => key !== "end" || rows.some(({ state }) => state === "running"));

const COLUMNS = [
  {
    key: "queue",
    title: "Queue",
    isHead: true,
    cell: (job, tab) =>
      html`<a href=${href(["queues", job.queue, job.kind === "empty" ? "messages" : "dead"])} tabindex=${tab}>${job.queue}</a>${job.target && job.target !== job.queue ? html` → <a href=${href(["queues", job.target])} tabindex="-1">${job.target}</a>` : ""}`,
  },
  { key: "kind", title: "Kind", width: "8.5rem", prio: 2, cell: ({ kind }) => KINDS[kind] ?? kind },
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
    width: "min(9rem, 21vw)",
    cell: (job) => html`<${Progress} job=${job} />`,
  },
  {
    key: "missing",
    title: "Already gone",
    isNumber: true,
    width: "6.5rem",
    prio: 3,
    hint: "removed by other programs before the job reached them",
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
    title: "Duration",
    isNumber: true,
    width: "5rem",
    prio: 3,
    cell: (job) => job.endedAt && age(new Date(job.endedAt) - new Date(job.startedAt)),
  },
  { key: "by", title: "User", width: "7rem", prio: 3, cell: ({ by }) => by },
  {
    key: "end",
    title: html`<span class="unseen">Action</span>`,
    width: "min(5rem, 18vw)",
    cell: (job, tab) =>
      job.state === "running" && may("operate") && html`<${Cancel} job=${job} tab=${tab} />`,
  },
];

/** The event stream has running jobs and the newest others; older ones are fetched. */
export function Jobs() {
  const pages = usePages("jobs", { limit: 50 });
  useAutoRefresh(jobs.value?.map(({ id, state }) => id + state).join(), pages);
  const isKnown = jobs.value || pages.items.length > 0 || !(pages.isLoading || pages.problem);
  const known = isKnown ? merged(jobs.value ?? [], pages.items) : null;
  return html`
    <${Head} title="Jobs"><p class="soft">Redrives and purges started in all consoles of this store. A cancelled job leaves each message either moved or in place.</p><//>
    <${ProblemBox} problem=${pages.problem} retry=${pages.reload} />
    ${
      known
        ? html`<${Table} label="Jobs" columns=${columns(known)} rows=${known} keyOf=${({ id }) => id} empty=${html`<${Empty} title="No recent jobs.">Redrives and purges are listed here while they run, and for a day after they end.<//>`} />`
        : !pages.problem && html`<p class="soft loading" aria-busy="true">Loading…</p>`
    }
    <${LoadMore} pages=${pages} what="jobs" />
    ${(known ?? [])
      .filter(({ error }) => error)
      .slice(0, 5)
      .map(({ id, queue, state, error }) => html`<p key=${id} class="soft">${queue}, ${state}: ${error}</p>`)}
  `;
}

/** Merge both lists, preferring the stream's; running jobs first, then the newest. */
function merged(streamed, fetched) {
  const known = new Map([...fetched, ...streamed].map((job) => [job.id, job]));
  const place = ({ state, startedAt, id }) => (state === "running" ? "1" : "0") + startedAt + id;
  return [...known.values()].sort((a, b) => (place(a) < place(b) ? 1 : -1));
}

function Progress({ job: { moved, matched, state } }) {
  const hasTotal = state === "running" && matched > 0;
  return html`${count(moved)}${matched != null && matched !== moved ? ` of ${count(matched)}` : ""}
    ${hasTotal && html`<progress max=${matched} value=${moved} aria-label="Progress">${moved}</progress>`}`;
}

function Cancel({ job, tab }) {
  const action = useAction(() => change("DELETE", at`jobs/${job.id}`));
  const cancel = async () => {
    if (await action.run()) notify(`Cancelled the ${KINDS[job.kind] ?? job.kind} of ${job.queue}.`);
  };
  return html`<button class="small" tabindex=${tab} disabled=${action.isBusy} onClick=${cancel}>Cancel</button>`;
}
