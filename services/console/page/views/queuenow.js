// A queue now, and how it went: figures, plots, how each protocol sees it, and what its counters say.

import { html } from "../html.js";
import { at } from "../api.js";
import { useAsked } from "../asking.js";
import { stepTimes } from "../flows.js";
import { age, bytes, count, DASH, latency, rate } from "../formats.js";
import { Choice, Facts } from "../parts/fields.js";
import { Plot } from "../parts/plot.js";
import { ProblemBox } from "../parts/problem.js";
import { route } from "../routes.js";

const RANGES = [
  ["15", "15 min"],
  ["60", "1 h"],
  ["360", "6 h"],
  ["1440", "24 h"],
];
const EVERY_MS = 10_000; // edges tell of themselves no more often

export function QueueNow({ queue }) {
  return html`
    <${Strip} queue=${queue} />
    <${Plots} name=${queue.name} />
    <div class="pair">
      <${Seen} queue=${queue} />
      <${Counters} queue=${queue} />
    </div>
  `;
}

/** One whose document cannot be read: what is known without it. */
export const Unreadable = ({ queue }) => html`
  <p class="problem" role="alert">
    This version cannot read the document of the queue: ${queue.unreadable}. What is in it can be looked at, and dead letters brought
    back; look at the document, or change it, with the version that wrote it.
  </p>
  <${Strip} queue=${queue} />
  <${Counters} queue=${queue} />
`;

function Strip({ queue }) {
  const { rates } = queue;
  const figures = [
    ["ready", count(queue.ready)],
    ["in flight", count(queue.inFlight)],
    ["dead", count(queue.dead), queue.dead ? "--dead" : null],
    ["oldest waits", queue.ready || queue.inFlight ? age(queue.oldestAgeMs) : DASH],
    ["in / s", rate(rates.in), "--in"],
    ["out / s", rate(rates.out), "--out"],
    ["acked / s", rate(rates.acked), "--acked"],
    ["size", bytes(queue.bytes)],
  ];
  return html`<dl class="strip" aria-label="Now">
    ${figures.map(([name, value, tone]) => html`<div key=${name} class=${tone ? "toned" : ""} style=${tone ? { "--tone": `var(${tone})` } : {}}><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>`;
}

const PLOTS = [
  [
    "Depth",
    count,
    1, // of each step
    [
      ["ready", "ready", "--in"],
      ["in flight", "inFlight", "--acked", true],
      ["dead", "dead", "--dead"],
    ],
  ],
  [
    "Messages a second",
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
    "Put to durable",
    latency,
    0.5,
    [
      ["median", "putP50Ms", "--in"],
      ["99 %", "putP99Ms", "--refused", true],
    ],
  ],
  [
    "Wait until first given out",
    latency,
    0.5,
    [
      ["median", "waitP50Ms", "--in"],
      ["99 %", "waitP99Ms", "--refused", true],
    ],
  ],
];

function Plots({ name }) {
  const { minutes = "60" } = route.value.query;
  const asked = useAsked(at`queues/${name}/history`, { minutes }, EVERY_MS);
  const told = asked.data;
  const series = told && { ...told.series, ready: readyOf(told.series) };
  return html`
    <section>
      <div class="tools"><h2>How it went</h2><${Choice} name="minutes" label="How far back" choices=${RANGES} unsaid="60" /></div>
      <${ProblemBox} problem=${asked.problem} again=${asked.again} />
      <div class="plots">
        ${
          told &&
          PLOTS.map(
            ([title, write, part, lines]) => html`
          <${Plot} key=${title} title=${title} at=${stepTimes(told, part)} write=${write} together="queue"
            lines=${lines.map(([line, name, tone, isDashed]) => ({ name: line, values: series[name], tone, isDashed }))} />
        `,
          )
        }
      </div>
    </section>
  `;
}

/** Its depth counts what was given out, too. */
const readyOf = ({ depth, inFlight }) => depth.map((held, i) => (held === null ? null : held - inFlight[i]));

/** How a program of each protocol names it, or why it cannot. */
function Seen({ queue: { protocols, reservedBy, reservedForMs, ownedBy } }) {
  const { tmq, ring, rqpMca, rqpCast, text } = protocols;
  const none = (what) => html`<span class="soft">${what}</span>`;
  return html`
    <section>
      <h2>How protocols see it</h2>
      <${Facts} class="lines" facts=${[
        ["TMQ", tmq ? html`<code>${tmq.name}</code>` : none("not at all")],
        [
          "Ring",
          ring
            ? html`<code>${ring.name ?? ring.queueId}</code>${ring.inbox != null ? ` inbox of group ${ring.inbox}` : ""}${ring.outbox != null ? ` outbox of group ${ring.outbox}` : ""}`
            : none("not at all"),
        ],
        ["RQP/MCA", rqpMca ? html`queue <code>${rqpMca.queueId}</code>` : none("no number")],
        ["RQP/cast", rqpCast ? html`key <code>${rqpCast.key}</code>` : none("no key")],
        ["Text", text ? html`<${TextSeen} text=${text} />` : none("neither subscribes nor publishes")],
        ["Reserved by", reservedBy && `${reservedBy}, for ${age(reservedForMs)}`],
        ["Carried by", ownedBy],
      ]} />
    </section>
  `;
}

const TextSeen = ({ text: { subscribe, publish } }) => html`
  ${subscribe?.length > 0 && html`subscribes ${subscribe.map((pattern) => html`<code>${pattern}</code> `)}`}
  ${publish && html`publishes as <code>${publish}</code>`}
`;

const WORDS = {
  added: "put in",
  delivered: "given out",
  acked: "acknowledged",
  returned: "went back",
  fenced: "settled too late",
  dead: "died",
  expired: "expired",
  duplicates: "duplicates",
  redriven: "brought back",
  deadTrimmed: "dead, trimmed",
  deadOverflowed: "of these, too many",
  purged: "dead, purged",
  emptied: "removed while ready",
  send_errors: "errors of sending",
  sendErrors: "errors of sending",
  bytes_in: "octets in",
  bytes_out: "octets out",
  bytesIn: "octets in",
  bytesOut: "octets out",
};

const Counters = ({ queue: { counters } }) => html`
  <section>
    <h2>Since it was made</h2>
    <${Facts} class="lines" facts=${Object.entries(counters).map(([name, value]) => [WORDS[name] ?? name, /bytes/.test(name) ? bytes(value) : count(value)])} />
  </section>
`;
