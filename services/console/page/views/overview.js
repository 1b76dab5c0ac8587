// The overview: totals, rates, queues that need attention, the busiest queues, and edges.

import { html } from "../html.js";
import { useResource } from "../fetching.js";
import { withHistory } from "../flows.js";
import { age, bytes, count, rate, several, since } from "../formats.js";
import { Empty } from "../components/problem.js";
import { Badge, Figure, Head } from "../components/fields.js";
import { Plot } from "../components/plot.js";
import { issuesOf } from "../components/issues.js";
import { Table } from "../components/table.js";
import { href } from "../routes.js";
import { edges, overview, queueList, rates, refreshMs } from "../state.js";

const MAX_ROWS = 8; // of each list

export function Overview() {
  const data = overview.value;
  return html`
    <${Head} title="Overview" />
    ${!data && html`<p class="soft loading" aria-busy="true">Loading…</p>`}
    ${
      data &&
      html`
      <${Alarms} alarms=${data.store.alarms} />
      <${Strip} overview=${data} />
      <${Rates} />
      <div class="pair">
        <${NeedsAttention} />
        <${Busiest} />
      </div>
      <${Processes} />
    `
    }
  `;
}

const Alarms = ({ alarms }) =>
  alarms.length > 0 &&
  html`<div class="problem" role="alert"><p><strong>Store alarms:</strong> ${alarms.join("; ")}</p></div>`;

function Strip({ overview: { totals, rates: now, store } }) {
  const figures = [
    ["In/s", rate(now.in), "--in"],
    ["Out/s", rate(now.out), "--out"],
    ["Acked/s", rate(now.acked), "--acked"],
    ["Ready", count(totals.ready)],
    ["In flight", count(totals.inFlight)],
    ["Dead letters", count(totals.dead), totals.dead ? "--dead" : null, "#/dead"],
    ["Queues", count(totals.queues), null, "#/queues"],
    ["Connections", count(totals.connections), null, "#/connections"],
    ["Memory", bytes(store.usedBytes), null, null, store.maxBytes ? `of ${bytes(store.maxBytes)}` : ""],
  ];
  return html`
    <dl class="strip" aria-label="Now">
      ${figures.map(
        ([name, value, tone, link, more]) => html`
          <div key=${name} style=${tone ? { "--tone": `var(${tone})` } : {}} class=${tone ? "toned" : ""}>
            <dt>${name}</dt>
            <dd>${link ? html`<a href=${link}>${value}</a>` : value} ${more && html`<small>${more}</small>`}</dd>
          </div>
        `,
      )}
    </dl>
  `;
}

function Rates() {
  const history = useResource("history", { minutes: 15 }).data;
  const { at, in: put, out, acked } = withHistory(history, rates.value, refreshMs.value);
  const lines = [
    { name: "in", values: put, tone: "--in" },
    { name: "out", values: out, tone: "--out" },
    { name: "acked", values: acked, tone: "--acked", isDashed: true },
  ];
  return html`<${Plot} title="Messages per second, all queues" at=${at} lines=${lines} format=${rate} height=${180} leastS=${300} />`;
}

function NeedsAttention() {
  const rows = queueList.value
    .map((queue) => ({ queue, issues: issuesOf(queue) }))
    .filter(({ issues }) => issues.length > 0)
    .sort((a, b) => b.issues[0].weight - a.issues[0].weight || a.queue.name.localeCompare(b.queue.name));
  return html`
    <section>
      <h2>Needs attention ${rows.length > MAX_ROWS && html`<span class="soft">${MAX_ROWS} of ${count(rows.length)}</span>`}</h2>
      ${rows.length === 0 && html`<${Empty} title="No issues." />`}
      <ul class="attention">
        ${rows.slice(0, MAX_ROWS).map(
          ({ queue, issues }) => html`
            <li key=${queue.name}>
              <a href=${href(["queues", queue.name])}>${queue.name}</a>
              <span>${issues.map(({ text, title, tone, to }) => html`<${Badge} tone=${tone} title=${title}>${to ? html`<a href=${to}>${text}</a>` : text}<//> `)}</span>
            </li>
          `,
        )}
      </ul>
    </section>
  `;
}

const busy = ({ rates: now }) => (now.in ?? 0) + (now.out ?? 0);

const COLUMNS = [
  {
    key: "name",
    title: "Queue",
    isHead: true,
    cell: ({ name }, tab) => html`<a href=${href(["queues", name])} tabindex=${tab}>${name}</a>`,
  },
  {
    key: "in",
    title: "In/s",
    isNumber: true,
    width: "min(4.5rem, 14vw)",
    cell: (row) => html`<${Figure} value=${row.rates.in} format=${rate} />`,
  },
  {
    key: "out",
    title: "Out/s",
    isNumber: true,
    width: "min(4.5rem, 14vw)",
    cell: (row) => html`<${Figure} value=${row.rates.out} format=${rate} />`,
  },
  {
    key: "ready",
    title: "Ready",
    isNumber: true,
    width: "min(5.5rem, 15vw)",
    cell: (row) => html`<${Figure} value=${row.ready} />`,
  },
];

function Busiest() {
  const rows = [...queueList.value].sort(
    (a, b) => busy(b) - busy(a) || b.ready - a.ready || a.name.localeCompare(b.name),
  );
  return html`
    <section>
      <h2>Busiest queues</h2>
      <${Table} label="Busiest queues" columns=${COLUMNS} rows=${rows.slice(0, MAX_ROWS)} keyOf=${(row) => row.name} empty=${html`<${Empty} title="There are no queues yet.">Create one in the <a href="#/queues">list of queues</a>.<//>`} />
    </section>
  `;
}

function Processes() {
  const known = edges.value;
  if (!known) return null;
  return html`
    <section>
      <h2>Edges</h2>
      ${known.length === 0 && html`<${Empty} title="No edge is running on this store.">Start one with <code>penstock serve EDGE</code>.<//>`}
      <ul class="processes">
        ${known.map(
          (each) => html`
            <li key=${each.process}>
              <span class=${`dot ${each.ready ? "good" : "bad"}`} title=${each.ready ? "ready" : "not ready"}></span>
              <a href=${href(["edges"])}>${each.edge}</a>
              <span class="soft">${each.host} · ${several(each.connections ?? 0, "connection")} · up ${age(since(each.startedAt))}${each.ready ? "" : " · not ready"}</span>
            </li>
          `,
        )}
      </ul>
    </section>
  `;
}
