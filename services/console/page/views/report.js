// The report of the analytics job: totals, deaths, recurring failures and unusual changes.

import { html } from "../html.js";
import { useResource } from "../fetching.js";
import { bytes, count, DASH, latency, share, several } from "../formats.js";
import { Badge, Head, Time } from "../components/fields.js";
import { Loaded, Empty } from "../components/problem.js";
import { Plot } from "../components/plot.js";
import { Table } from "../components/table.js";
import { href } from "../routes.js";

const DURABLE = "time until messages are durable, 99th percentile";
const DELIVERY = "time until the first delivery, 99th percentile";
const seconds = (value) => latency(value == null ? null : value * 1000);
/** Format an hour, 2026-11-28T01, with a minute. */
const clock = (text, minute) => `${text.replace("T", " ")}:${minute}`;
const hour = (text) => Date.parse(`${text}:00:00Z`) / 1000;
const number = (key, title, value, more = {}) => ({
  key,
  title,
  isNumber: true,
  width: "min(6rem, 17vw)",
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
  const resource = useResource("report");
  const isNone = resource.problem?.status === 404;
  return html`
    <${Head} title="Report" />
    ${isNone && html`<${Empty} title="There is no report yet.">The analytics job creates it: run <code>python -m services.analytics</code>, or enable the chart's CronJob.<//>`}
    ${!isNone && html`<${Loaded} resource=${resource}>${(report) => html`<${Findings} report=${report} />`}<//>`}
  `;
}

function Findings({ report }) {
  const { totals, deaths, left_out: left } = report;
  return html`
    <${Period} report=${report} />
    <${Missing} missing=${report.missing} />
    <${Totals} totals=${totals} report=${report} />
    <${Hours} hours=${report.hours} isRunning=${report.period.is_running} />
    <div class="pair">
      <${Counts} title="Why messages died" counts=${deaths.by_reason} left=${left["deaths.by_reason"]} tone="--dead" />
      <${Counts} title="Why messages were refused" counts=${report.refused} left=${left.refused} tone="--refused" />
      <${Counts} title="Dead letters by origin (minimum counts)" counts=${deaths.by_origin} left=${left["deaths.by_origin"]} tone="--dead" />
      <${Counts} title="Dead letters by edge" counts=${deaths.by_edge} left=${left["deaths.by_edge"]} tone="--dead" />
    </div>
    <${Section} title="Recurring failures" rows=${report.failures} left=${left.failures} columns=${FAILURES} keyOf=${keyed("domain", "queue", "reason", "pattern", "fingerprint")} none="No dead letters." />
    <${Section} title="Error budgets" rows=${report.budget.queues} left=${left["budget.queues"]} columns=${BUDGETS} keyOf=${keyed("domain", "queue")} none="No queue has used any of its budget." />
    <${Section} title="Unusual compared to the week before" rows=${report.changes.top.map((row) => ({ ...row, isRunning: report.period.is_running && row.hour === report.period.last }))} left=${left["changes.top"]} columns=${CHANGES} keyOf=${keyed("hour", "domain", "queue", "metric")} none="Nothing unusual." />
    <${Section} title="Queues" rows=${report.queues} left=${left.queues} columns=${QUEUES} keyOf=${keyed("domain", "queue")} none="No data on queues." />
    <${Section} title="Outcome of redrives" rows=${report.redrives.queues} left=${left["redrives.queues"]} columns=${REDRIVES} keyOf=${keyed("domain", "queue")} none="No redrives." />
    <${Section} title="Edges" rows=${report.edges} left=${left.edges} columns=${EDGES} keyOf=${keyed("edge")} none="No data on edges." />
  `;
}

/** Build the key of a row from untrusted texts. */
const keyed = (...names) => (row) => JSON.stringify(names.map((name) => row[name]));

function Period({ report: { period, now_ms: now } }) {
  const made = html`as of ${" "}<${Time} at=${new Date(now).toISOString()} />`;
  if (!period.last) return html`<p class="soft">No tables yet, ${made}.</p>`;
  const known = `data for ${period.known} of ${several(period.hours, "hour")}`;
  const running = period.is_running && " The last hour was not over yet, so its figures are partial.";
  return html`<p class="soft">${clock(period.first, "00")} to ${clock(period.last, "59")} UTC, ${known}, ${made}.${running}</p>`;
}

/** A warning that figures are too low. */
function Missing({ missing }) {
  const { lost_samples: samples, lost_streams: streams, late } = missing;
  const unused = missing.quarantined_dead + missing.quarantined_samples;
  if (!samples && !streams && !unused && !late) return null;
  return html`
    <p class="lost" role="status">
      <strong>Incomplete data.</strong>
      ${samples > 0 && ` ${several(samples, "sample")} trimmed before a run read them, so counts are too low.`}
      ${streams > 0 && ` ${several(streams, "stream")} deleted or rolled back after a run had read them; later data is lost.`}
      ${unused > 0 && ` ${several(unused, "unusable record")} in quarantine, with reasons.`}
      ${late > 0 && ` ${several(late, "record")} arrived too late for the hourly tables.`}
    </p>
  `;
}

/** The number of rows that the report leaves out. */
const Omitted = ({ number = 0 }) => number > 0 && html`<p class="soft">${count(number)} more are not in the report.</p>`;

function Totals({ totals, report: { budget, put, wait } }) {
  const figures = [
    ["In", count(totals.in), bytes(totals.in_octets)],
    ["Out", count(totals.out)],
    ["Acked", count(totals.acked), totals.acked_octets != null && bytes(totals.acked_octets)],
    ["Refused", count(totals.refused)],
    ["Died", count(totals.died), `${several(totals.dead, "letter")} read`],
    ["Accepted", share(budget.availability), `objective ${share(budget.objective)}`],
    ["Durable p99", seconds(put.p99), "", DURABLE],
    ["Delivery p99", seconds(wait.p99), "", DELIVERY],
  ];
  return html`<dl class="strip" aria-label="Totals">${figures.map(([name, value, more, hint]) => html`<div key=${name} title=${hint}><dt>${name}</dt><dd>${value} ${more && html`<small>${more}</small>`}</dd></div>`)}</dl>
    ${totals.difference && html`<p class="soft">${totals.difference}</p>`}`;
}

function Hours({ hours, isRunning }) {
  if (hours.length < 2) return null;
  const of = (name) => hours.map((each) => each[name]);
  const lines = [
    ["in", "in", "--in"],
    ["out", "out", "--out"],
    ["dead", "dead", "--dead"],
  ].map(([name, from, tone]) => ({ name, values: of(from), tone }));
  const title = isRunning ? "Messages per hour (last hour partial)" : "Messages per hour";
  return html`<${Plot} title=${title} at=${hours.map((each) => hour(each.hour))} lines=${lines} format=${count} />`;
}

/** Counts by name as bars; the largest has the full width. */
function Counts({ title, counts, left, tone }) {
  const most = Math.max(...counts.map((each) => each.count), 1);
  return html`
    <section>
      <h2>${title}</h2>
      ${counts.length === 0 && html`<p class="soft">None.</p>`}
      <ul class="bars" style=${{ "--tone": `var(${tone})` }}>
        ${counts.map((each) => html`<li key=${each.name}><span>${each.name}</span><span class="n">${count(each.count)}</span><i style=${{ width: `${(100 * each.count) / most}%` }}></i></li>`)}
      </ul>
      <${Omitted} number=${left} />
    </section>
  `;
}

const Section = ({ title, rows, left, columns, keyOf, none }) => html`
  <section>
    <h2>${title}</h2>
    ${rows.length ? html`<${Table} label=${title} columns=${columns} rows=${rows} keyOf=${keyOf} />` : html`<p class="soft">${none}</p>`}
    <${Omitted} number=${left} />
  </section>
`;

const FAILURES = [
  {
    ...queueColumn,
    cell: ({ queue, example_id: id }, tab) =>
      html`<a href=${href(["queues", queue, "dead", id])} tabindex=${tab}>${queue}</a>`,
  },
  { key: "reason", title: "Reason", width: "9rem", cell: ({ reason }) => reason },
  {
    key: "pattern",
    title: "Error",
    width: "42%",
    prio: 2,
    cell: ({ pattern, example, fingerprint }) =>
      pattern
        ? html`<span title=${example}>${pattern}</span>`
        : html`<span class="soft">no error text; body fingerprint <code>${fingerprint}</code></span>`,
  },
  number("count", "Count", (row) => row.count),
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
  number("asked", "Requests", (row) => row.asked, { prio: 2 }),
  number("refused", "Refused", (row) => row.refused),
  number("accepted", "Accepted", () => 0, { prio: 2, cell: (row) => share(row.availability) }),
  number("used", "Used", () => 0, {
    width: "7rem",
    cell: ({ used }) => (used > 1 ? html`<${Badge} tone="bad" title="The budget is spent">${share(used)}<//>` : share(used)),
  }),
];
const CHANGES = [
  queueColumn,
  { key: "metric", title: "Metric", width: "6rem", cell: ({ metric }) => metric },
  {
    key: "verdict",
    title: "Change",
    width: "5rem",
    cell: ({ verdict }) => html`<${Badge} tone="warn">${verdict}<//>`,
  },
  number("value", "Value", (row) => row.value),
  number("median", "Median", (row) => row.week_median, { prio: 2 }),
  {
    key: "hour",
    title: "Hour, UTC",
    width: "13.5rem",
    prio: 2,
    cell: ({ hour, isRunning }) => html`${clock(hour, "00")}${isRunning && html` <${Badge} title="The hour was not over yet: its figures are partial">partial<//>`}`,
  },
];
const QUEUES = [
  queueColumn,
  number("in", "In", (row) => row.in),
  number("out", "Out", (row) => row.out),
  number("refused", "Refused", (row) => row.refused, { prio: 2 }),
  number("dead", "Dead", (row) => row.dead),
  number("put", "Durable p99", () => 0, { width: "6.5rem", prio: 2, hint: DURABLE, cell: (row) => seconds(row.put_p99) }),
  number("wait", "Delivery p99", () => 0, { width: "6.5rem", prio: 2, hint: DELIVERY, cell: (row) => seconds(row.wait_p99) }),
  number("most", "Max. depth", (row) => row.len_max, { prio: 3 }),
];
const REDRIVES = [
  queueColumn,
  number("redriven", "Redriven", (row) => row.redriven),
  number("again", "Died again", (row) => row.died_again),
  number("success", "Succeeded", () => 0, { cell: (row) => share(row.success) }),
];
const EDGES = [
  { key: "edge", title: "Edge", isHead: true, cell: ({ edge }) => edge },
  number("processes", "Processes", (row) => row.processes_max),
  number("connections", "Peak", (row) => row.connections_max),
  number("opened", "Opened", (row) => row.opened, { prio: 2 }),
  number("received", "Received", () => 0, { prio: 2, cell: (row) => bytes(row.received_octets) }),
  number("sent", "Sent", () => 0, { prio: 2, cell: (row) => bytes(row.sent_octets) }),
];
