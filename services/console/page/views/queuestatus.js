// A queue's status: figures, history, protocol bindings and counters.

import { html } from "../html.js";
import { at } from "../api.js";
import { useResource } from "../fetching.js";
import { stepTimes } from "../flows.js";
import { age, bytes, count, DASH, latency, rate, sentence } from "../formats.js";
import { Choice, Facts } from "../components/fields.js";
import { Plot } from "../components/plot.js";
import { ResourceProblem } from "../components/problem.js";
import { route } from "../routes.js";
import { may } from "../session.js";

const RANGES = [
  ["15", "15 min"],
  ["60", "1 h"],
  ["360", "6 h"],
  ["1440", "24 h"],
];
const EVERY_MS = 10_000; // the interval of the store's samples

export function QueueStatus({ queue }) {
  return html`
    <${Strip} queue=${queue} />
    <${Plots} name=${queue.name} />
    <div class="pair">
      <${Bindings} queue=${queue} />
      <${Counters} queue=${queue} />
    </div>
  `;
}

/** The status of a queue whose document cannot be read. */
export const Unreadable = ({ queue }) => html`
  <p class="problem" role="alert">
    ${sentence(queue.unreadable)} You can browse its messages and redrive its dead letters. Use the version that wrote the document to view
    or edit it${may("admin") ? ", or replace the whole document" : ""}.
  </p>
  <${Strip} queue=${queue} />
  <${Counters} queue=${queue} />
`;

function Strip({ queue }) {
  const { rates } = queue;
  const figures = [
    ["Ready", count(queue.ready)],
    ["In flight", count(queue.inFlight)],
    ["Dead letters", count(queue.dead), queue.dead ? "--dead" : null],
    ["Oldest message", queue.ready || queue.inFlight ? age(queue.oldestAgeMs) : DASH],
    ["In/s", rate(rates.in), "--in"],
    ["Out/s", rate(rates.out), "--out"],
    ["Acked/s", rate(rates.acked), "--acked"],
    ["Size", bytes(queue.bytes)],
  ];
  return html`<dl class="strip" aria-label="Now">
    ${figures.map(([name, value, tone]) => html`<div key=${name} class=${tone ? "toned" : ""} style=${tone ? { "--tone": `var(${tone})` } : {}}><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>`;
}

const PLOTS = [
  [
    "Depth",
    count,
    1, // the end of each step
    [
      ["ready", "ready", "--in"],
      ["in flight", "inFlight", "--acked", true],
      ["dead", "dead", "--dead"],
    ],
  ],
  [
    "Messages per second",
    rate,
    0.5,
    [
      ["in", "in", "--in"],
      ["out", "out", "--out"],
      ["acked", "acked", "--acked", true],
      ["refused", "refused", "--refused"],
    ],
  ],
  [
    "Time to durable",
    latency,
    0.5,
    [
      ["median", "putP50Ms", "--in"],
      ["p99", "putP99Ms", "--refused", true],
    ],
  ],
  [
    "Time to first delivery",
    latency,
    0.5,
    [
      ["median", "waitP50Ms", "--in"],
      ["p99", "waitP99Ms", "--refused", true],
    ],
  ],
];

function Plots({ name }) {
  const { minutes = "60" } = route.value.query;
  const resource = useResource(at`queues/${name}/history`, { minutes }, EVERY_MS);
  const history = resource.data;
  const series = history && { ...history.series, ready: readyOf(history.series) };
  return html`
    <section>
      <div class="tools"><h2>History</h2><${Choice} name="minutes" label="Period" choices=${RANGES} unset="60" /></div>
      <${ResourceProblem} resource=${resource} />
      <div class="plots">
        ${
          history &&
          PLOTS.map(
            ([title, format, part, lines]) => html`
          <${Plot} key=${title} title=${title} at=${stepTimes(history, part)} format=${format} syncKey="queue"
            lines=${lines.map(([line, name, tone, isDashed]) => ({ name: line, values: series[name], tone, isDashed }))} />
        `,
          )
        }
      </div>
    </section>
  `;
}

/** Depth includes messages in flight. */
const readyOf = ({ depth, inFlight }) => depth.map((held, i) => (held === null ? null : held - inFlight[i]));

/** How programs of each protocol address the queue. */
function Bindings({ queue: { protocols, reservedBy, reservedForMs, ownedBy } }) {
  const { tmq, ring, rqpMca, rqpCast, text } = protocols;
  const none = (what) => html`<span class="soft">${what}</span>`;
  return html`
    <section>
      <h2>Protocol bindings</h2>
      <${Facts} class="lines" facts=${[
        ["TMQ", tmq ? html`<code>${tmq.name}</code>` : none("not available")],
        [
          "Ring",
          ring
            ? html`<code>${ring.name ?? ring.queueId}</code>${ring.inbox != null ? ` inbox of group ${ring.inbox}` : ""}${ring.outbox != null ? ` outbox of group ${ring.outbox}` : ""}`
            : none("not available"),
        ],
        ["RQP/MCA", rqpMca ? html`queue ID <code>${rqpMca.queueId}</code>` : none("no queue ID")],
        ["RQP/cast", rqpCast ? html`key <code>${rqpCast.key}</code>` : none("no key")],
        ["Text", text ? html`<${TextBinding} text=${text} />` : none("no subscription, no publication")],
        ["Reserved by", reservedBy && `${reservedBy}, for ${age(reservedForMs)}`],
        ["Forwarded by", ownedBy],
      ]} />
    </section>
  `;
}

const TextBinding = ({ text: { subscribe, publish } }) => html`
  ${subscribe?.length > 0 && html`subscribes to ${subscribe.map((pattern) => html`<code>${pattern}</code> `)}`}
  ${publish && html`publishes as <code>${publish}</code>`}
`;

const LABELS = {
  added: "Published",
  delivered: "Deliveries",
  acked: "Acknowledged",
  returned: "Returned",
  fenced: "Settled too late",
  dead: "Died",
  expired: "Expired",
  duplicates: "Duplicates",
  redriven: "Redriven",
  deadTrimmed: "Dead letters trimmed",
  deadOverflowed: "Trimmed because of the limit",
  purged: "Dead letters purged",
  emptied: "Ready messages purged",
  send_errors: "Send errors",
  sendErrors: "Send errors",
  bytes_in: "Octets in",
  bytes_out: "Octets out",
  bytesIn: "Octets in",
  bytesOut: "Octets out",
};

const Counters = ({ queue: { counters } }) => html`
  <section>
    <h2>Totals since creation</h2>
    <${Facts} class="lines" facts=${Object.entries(counters).map(([name, value]) => [LABELS[name] ?? name, /bytes/.test(name) ? bytes(value) : count(value)])} />
  </section>
`;
