// The rings: who is linked with whom, who leads, who has fallen silent.

import { html } from "../html.js";
import { useAsked } from "../asking.js";
import { age, count, DASH, several } from "../formats.js";
import { seen } from "../names.js";
import { Badge, Head } from "../parts/fields.js";
import { Asked, Empty } from "../parts/problem.js";
import { RingPicture } from "../parts/ringpicture.js";
import { Table } from "../parts/table.js";

const EVERY_MS = 2000;

const COLUMNS = [
  { key: "name", title: "Node", isHead: true, width: "34%", cell: (node) => seen(node.name) },
  { key: "state", title: "State", width: "6rem", cell: (node) => html`<${State} node=${node} />` },
  { key: "successor", title: "Successor", cell: (node) => neighbour(node.successor) },
  { key: "predecessor", title: "Predecessor", prio: 3, cell: (node) => neighbour(node.predecessor) },
  { key: "leader", title: "Goes by", width: "8rem", prio: 3, cell: (node) => node.leader },
  {
    key: "break",
    title: "Last break",
    width: "16%",
    prio: 3,
    cell: ({ lastBreak }) => lastBreak && `${age(lastBreak.agoS * 1000)} ago: ${lastBreak.why}`,
  },
  {
    key: "written",
    title: "Heard",
    isNumber: true,
    width: "6rem",
    prio: 2,
    cell: (node) => `${age(node.writtenAgoMs)} ago`,
  },
];

const neighbour = (link) =>
  link ? html`<span title=${link.address}>${link.name ?? "unnamed"}</span>` : DASH;

function State({ node }) {
  if (node.isSilent) return html`<${Badge} tone="bad">silent<//>`;
  if (node.isAway) return html`<${Badge} tone="warn" title=${node.away}>away<//>`;
  return node.isLeader ? html`<${Badge} tone="good">leader<//>` : html`<${Badge}>member<//>`;
}

export function Ring() {
  const asked = useAsked("ring", {}, EVERY_MS);
  return html`
    <${Head} title="Ring"><p class="soft">As the nodes with this store tell of themselves. Nodes with other stores are seen by their neighbours only.</p><//>
    <${Asked} asked=${asked}>
      ${({ groups }) =>
        groups.length
          ? groups.map((group) => html`<${Group} key=${group.group} group=${group} />`)
          : html`<${Empty} title="No ring node has told this store of itself.">Start one with <code>penstock serve ring</code>, and name its group.<//>`}
    <//>
  `;
}

function shape({ isClosed, nodes }) {
  if (isClosed) return `a whole ring of ${count(nodes.length)}`;
  return isClosed === null
    ? "part of a ring that is not all seen from here"
    : `${several(nodes.length, "node")}, not one ring`;
}

function Group({ group }) {
  const led = group.leaders.length ? `led by ${group.leaders.join(", ")}` : "without a leader";
  return html`
    <section class="group">
      <h2>Group ${group.group}</h2>
      <p class="soft" aria-live="polite">${shape(group)}, ${led}</p>
      <div class="ringpair">
        <${RingPicture} group=${group} />
        <${Table} label=${`Nodes of group ${group.group}`} columns=${COLUMNS} rows=${group.nodes} keyOf=${({ name }) => name} />
      </div>
      ${group.nodes.filter((node) => node.isAway && node.away).map((node) => html`<p key=${node.name} class="soft">${node.name} takes no part: ${node.away}</p>`)}
    </section>
  `;
}
