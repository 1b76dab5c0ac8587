// Rings: links between nodes, leaders, and silent nodes.

import { html } from "../html.js";
import { useResource } from "../fetching.js";
import { age, count, DASH, several } from "../formats.js";
import { visibleName } from "../names.js";
import { Badge, Head } from "../components/fields.js";
import { Loaded, Empty } from "../components/problem.js";
import { RingDiagram } from "../components/ringdiagram.js";
import { Table } from "../components/table.js";

const EVERY_MS = 2000;

const COLUMNS = [
  { key: "name", title: "Node", isHead: true, width: "34%", cell: (node) => visibleName(node.name) },
  { key: "state", title: "State", width: "6rem", cell: (node) => html`<${State} node=${node} />` },
  { key: "successor", title: "Successor", cell: (node) => neighbour(node.successor) },
  { key: "predecessor", title: "Predecessor", prio: 3, cell: (node) => neighbour(node.predecessor) },
  { key: "leader", title: "Leader", width: "8rem", prio: 3, cell: (node) => node.leader },
  {
    key: "break",
    title: "Last link failure",
    width: "16%",
    prio: 3,
    cell: ({ lastBreak }) => lastBreak && `${age(lastBreak.agoS * 1000)} ago: ${lastBreak.why}`,
  },
  {
    key: "written",
    title: "Reported",
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
  const resource = useResource("ring", {}, EVERY_MS);
  return html`
    <${Head} title="Ring"><p class="soft">As reported by the nodes of this store. Nodes of other stores are known only by their neighbours.</p><//>
    <${Loaded} resource=${resource}>
      ${({ groups }) =>
        groups.length
          ? groups.map((group) => html`<${Group} key=${group.group} group=${group} />`)
          : html`<${Empty} title="No ring node reports to this store.">Start one with <code>penstock serve ring</code> and set its group.<//>`}
    <//>
  `;
}

function shape({ isClosed, nodes }) {
  if (isClosed) return `Complete ring of ${several(nodes.length, "node")}`;
  return isClosed === null
    ? "Part of a larger ring; the rest is in other stores"
    : `${several(nodes.length, "node")}, ring not closed`;
}

function Group({ group }) {
  const led = group.leaders.length ? `leader: ${group.leaders.join(", ")}` : "no leader";
  return html`
    <section class="group">
      <h2>Group ${group.group}</h2>
      <p class="soft" aria-live="polite">${shape(group)}, ${led}</p>
      <div class="ringpair">
        <${RingDiagram} group=${group} />
        <${Table} label=${`Nodes of group ${group.group}`} columns=${COLUMNS} rows=${group.nodes} keyOf=${({ name }) => name} />
      </div>
      ${group.nodes.filter((node) => node.isAway && node.away).map((node) => html`<p key=${node.name} class="soft">${node.name} is not in the ring: ${node.away}</p>`)}
    </section>
  `;
}
