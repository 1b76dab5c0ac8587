// What the analytics job found out last: what happened, what died, what fails alike, what is suddenly otherwise.

import { html } from "../html.js";
import { useAsked } from "../asking.js";
import { bytes, count, DASH, latency, share, several } from "../formats.js";
import { Badge, Head, Time } from "../parts/fields.js";
import { Asked, Empty } from "../parts/problem.js";
import { Plot } from "../parts/plot.js";
import { Table } from "../parts/table.js";
import { href } from "../routes.js";

const seconds = (value) => latency(value == null ? null : value * 1000);
const hour = (text) => Date.parse(`${text}:00:00Z`) / 1000;
const number = (key, title, value, more = {}) => ({
  key,
  title,
  isNumber: true,
  width: "6rem",
  cell: (row) => count(value(row)),
  ...more,
});
const queueColumn = {
  key: "queue",
  title: "Queue",
  isHead: true,
  cell: ({ queue }, tab) => html`<a href=${href(["queues", queue])} tabindex=${tab}>${queue}</a>`,
};

export function Report() {
  const asked = useAsked("report");
  const isNone = asked.problem?.status === 404;
  return html`
    <${Head} title="Report" />
    ${isNone && html`<${Empty} title="There is no report yet.">The analytics job makes one: <code>python -m services.analytics</code>, or the chart's CronJob.<//>`}
    ${!isNone && html`<${Asked} asked=${asked}>${(report) => html`<${Found} report=${report} />`}<//>`}
  `;
}

function Found({ report }) {
  const { totals, deaths, left_out: left } = report;
  return html`
    <${Span} report=${report} />
    <${Unknown} missing=${report.missing} />
    <${Sums} totals=${totals} report=${report} />
    <${Hours} hours=${report.hours} isRunning=${report.period.is_running} />
    <div class="pair">
      <${Counts} title="Why messages died" counts=${deaths.by_reason} left=${left["deaths.by_reason"]} tone="--dead" />
      <${Counts} title="Why messages were refused" counts=${report.refused} left=${left.refused} tone="--refused" />
      <${Counts} title="Who had put in what died, at least" counts=${deaths.by_origin} left=${left["deaths.by_origin"]} tone="--dead" />
      <${Counts} title="How it had come in" counts=${deaths.by_edge} left=${left["deaths.by_edge"]} tone="--dead" />
    </div>
    <${Section} title="What fails alike" rows=${report.failures} left=${left.failures} columns=${FAILURES} keyOf=${keyed("domain", "queue", "reason", "pattern", "fingerprint")} none="Nothing died." />
    <${Section} title="Error budgets" rows=${report.budget.queues} left=${left["budget.queues"]} columns=${BUDGETS} keyOf=${keyed("domain", "queue")} none="No queue has used any of its budget." />
    <${Section} title="Suddenly otherwise than in the week before" rows=${report.changes.top.map((row) => ({ ...row, isRunning: report.period.is_running && row.hour === report.period.last }))} left=${left["changes.top"]} columns=${CHANGES} keyOf=${keyed("hour", "domain", "queue", "metric")} none="Nothing is." />
    <${Section} title="Queues" rows=${report.queues} left=${left.queues} columns=${QUEUES} keyOf=${keyed("domain", "queue")} none="Nothing is known of queues." />
    <${Section} title="Whether redrives helped" rows=${report.redrives.queues} left=${left["redrives.queues"]} columns=${REDRIVES} keyOf=${keyed("domain", "queue")} none="Nothing was brought back." />
    <${Section} title="Edges" rows=${report.edges} left=${left.edges} columns=${EDGES} keyOf=${keyed("edge")} none="Nothing is known of edges." />
  `;
}

/** What names a row: texts of strangers, which may have any sign in them. */
const keyed = (...names) => (row) => JSON.stringify(names.map((name) => row[name]));

function Span({ report: { period, now_ms: now } }) {
  const made = html`made of what there was on ${" "}<${Time} at=${new Date(now).toISOString()} />`;
  if (!period.last) return html`<p class="soft">No tables yet; ${made}.</p>`;
  const known = `${several(period.known, "hour")} of ${period.hours} known`;
  const running = period.is_running && "; the last hour was still running then, and its figures grow";
  return html`<p class="soft">Hours ${period.first} to ${period.last} UTC, ${known}; ${made}${running}.</p>`;
}

/** Whoever reads figures is to know that they are too low. */
function Unknown({ missing }) {
  const { lost_samples: samples, lost_streams: streams, late } = missing;
  const unused = missing.quarantined_dead + missing.quarantined_samples;
  if (!samples && !streams && !unused && !late) return null;
  return html`
    <p class="lost" role="status">
      <strong>Not all is known.</strong>
      ${samples > 0 && ` Samples that were trimmed before a run read them: ${count(samples)}, so counts are too low.`}
      ${streams > 0 && ` Streams that vanished or went back after a run had read them: ${count(streams)}; what they had beyond that, nobody knows.`}
      ${unused > 0 && ` Records that could not be used, and are in the quarantine with the reason: ${count(unused)}.`}
      ${late > 0 && ` Records that came too late for the tables of their hours, and are in the archive alone: ${count(late)}.`}
    </p>
  `;
}

/** Rows for which the report had no room. */
const Left = ({ number = 0 }) => number > 0 && html`<p class="soft">${count(number)} more are not in the report.</p>`;

function Sums({ totals, report: { budget, put, wait } }) {
  const figures = [
    ["in", count(totals.in), bytes(totals.in_octets)],
    ["out", count(totals.out), bytes(totals.out_octets)],
    ["acked", count(totals.acked)],
    ["refused", count(totals.refused)],
    ["dead", count(totals.dead)],
    ["accepted", share(budget.availability), `of ${share(budget.objective)} wanted`],
    ["put, 99 %", seconds(put.p99)],
    ["wait, 99 %", seconds(wait.p99)],
  ];
  return html`<dl class="strip" aria-label="Sums">${figures.map(([name, value, more]) => html`<div key=${name}><dt>${name}</dt><dd>${value} ${more && html`<small>${more}</small>`}</dd></div>`)}</dl>`;
}

function Hours({ hours, isRunning }) {
  if (hours.length < 2) return null;
  const of = (name) => hours.map((each) => each[name]);
  const lines = [
    ["in", "in", "--in"],
    ["out", "out", "--out"],
    ["dead", "dead", "--dead"],
  ].map(([name, from, tone]) => ({ name, values: of(from), tone }));
  const title = isRunning ? "Messages an hour, the last one still running" : "Messages an hour";
  return html`<${Plot} title=${title} at=${hours.map((each) => hour(each.hour))} lines=${lines} write=${count} />`;
}

/** Names with counts, as bars: the greatest is as wide as there is room. */
function Counts({ title, counts, left, tone }) {
  const most = Math.max(...counts.map((each) => each.count), 1);
  return html`
    <section>
      <h2>${title}</h2>
      ${counts.length === 0 && html`<p class="soft">Nothing.</p>`}
      <ul class="bars" style=${{ "--tone": `var(${tone})` }}>
        ${counts.map((each) => html`<li key=${each.name}><span>${each.name}</span><span class="n">${count(each.count)}</span><i style=${{ width: `${(100 * each.count) / most}%` }}></i></li>`)}
      </ul>
      <${Left} number=${left} />
    </section>
  `;
}

const Section = ({ title, rows, left, columns, keyOf, none }) => html`
  <section>
    <h2>${title}</h2>
    ${rows.length ? html`<${Table} label=${title} columns=${columns} rows=${rows} keyOf=${keyOf} />` : html`<p class="soft">${none}</p>`}
    <${Left} number=${left} />
  </section>
`;

const FAILURES = [
  {
    ...queueColumn,
    width: "18%",
    cell: ({ queue, example_id: id }, tab) =>
      html`<a href=${href(["queues", queue, "dead", id])} tabindex=${tab}>${queue}</a>`,
  },
  { key: "reason", title: "Reason", width: "9rem", cell: ({ reason }) => reason },
  {
    key: "pattern",
    title: "Error",
    cell: ({ pattern, example, fingerprint }) =>
      pattern
        ? html`<span title=${example}>${pattern}</span>`
        : html`<span class="soft">none told; bodies <code>${fingerprint}</code></span>`, // what else tells rows apart
  },
  number("count", "Letters", (row) => row.count),
  {
    key: "last",
    title: "Last",
    width: "9rem",
    prio: 2,
    cell: (row) => html`<${Time} at=${new Date(row.last_ms).toISOString()} />`,
  },
];
const BUDGETS = [
  queueColumn,
  number("asked", "Asked", (row) => row.asked, { prio: 2 }),
  number("refused", "Refused", (row) => row.refused),
  number("accepted", "Accepted", () => 0, { prio: 2, cell: (row) => share(row.availability) }),
  number("used", "Used", () => 0, {
    width: "7rem",
    cell: ({ used }) => (used > 1 ? html`<${Badge} tone="bad" title="The budget is spent">${share(used)}<//>` : share(used)),
  }),
];
const CHANGES = [
  queueColumn,
  { key: "metric", title: "What", width: "6rem", cell: ({ metric }) => metric },
  {
    key: "verdict",
    title: "Went",
    width: "5rem",
    cell: ({ verdict }) => html`<${Badge} tone="warn">${verdict}<//>`,
  },
  number("value", "Now", (row) => row.value),
  number("median", "Median", (row) => row.week_median, { prio: 2 }),
  {
    key: "hour",
    title: "Hour, UTC",
    width: "13.5rem",
    prio: 2,
    cell: ({ hour, isRunning }) => html`${hour}${isRunning && html` <${Badge} title="It was still running: its figures grow">until now<//>`}`,
  },
];
const QUEUES = [
  queueColumn,
  number("in", "In", (row) => row.in),
  number("out", "Out", (row) => row.out),
  number("refused", "Refused", (row) => row.refused, { prio: 2 }),
  number("dead", "Dead", (row) => row.dead),
  number("put", "Put 99 %", () => 0, { prio: 2, cell: (row) => seconds(row.put_p99) }),
  number("wait", "Wait 99 %", () => 0, { prio: 2, cell: (row) => seconds(row.wait_p99) }),
  number("most", "Most held", (row) => row.len_max, { prio: 3 }),
];
const REDRIVES = [
  queueColumn,
  number("redriven", "Back", (row) => row.redriven),
  number("again", "Died again", (row) => row.died_again),
  number("success", "Helped", () => 0, { cell: (row) => share(row.success) }),
];
const EDGES = [
  { key: "edge", title: "Edge", isHead: true, cell: ({ edge }) => edge },
  number("processes", "Processes", (row) => row.processes_max),
  number("connections", "Most open", (row) => row.connections_max),
  number("opened", "Opened", (row) => row.opened, { prio: 2 }),
  number("received", "Received", () => 0, { prio: 2, cell: (row) => bytes(row.received_octets) }),
  number("sent", "Sent", () => 0, { prio: 2, cell: (row) => bytes(row.sent_octets) }),
];
