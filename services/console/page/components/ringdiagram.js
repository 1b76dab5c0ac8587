// A drawing of a ring: nodes on a circle, an arrow from each to its successor, a gap where there is no link. The table beside it has
// the same as text.

import { html } from "../html.js";
import { age } from "../formats.js";

const LABEL_ROOM = [122, 57]; // beside and above the circle
const CENTRE = [0, 0];
const NODE = 15; // radius
const RADIAL_ABOVE = 12; // nodes: with more, labels are radial so that they do not overlap
const MIN_RADIUS = 98; // of the circle, which grows with the number of nodes
const SPACING = 3.2 * NODE; // between centres along the circle, with room for an arrow

const radiusOf = (number) => Math.max(MIN_RADIUS, (number * SPACING) / (2 * Math.PI));

/** Return the SVG view box, centred on 0 0. */
function viewBox(number) {
  const [x, y] = LABEL_ROOM.map((room) => radiusOf(number) + (number > RADIAL_ABOVE ? LABEL_ROOM[0] : room));
  return `${-x} ${-y} ${2 * x} ${2 * y}`;
}

/** Return the places of nodes, in the order of the ring: Map name → {x, y, angle}. */
export function places(nodeNames) {
  const radius = nodeNames.length === 1 ? 0 : radiusOf(nodeNames.length);
  return new Map(
    nodeNames.map((name, i) => {
      const angle = (2 * Math.PI * i) / nodeNames.length - Math.PI / 2;
      return [
        name,
        { x: CENTRE[0] + radius * Math.cos(angle), y: CENTRE[1] + radius * Math.sin(angle), angle },
      ];
    }),
  );
}

/** Return names in the order of the ring: chains one after the other, then nodes without links. */
export function order(group) {
  const inChains = group.chains.flatMap((chain) => chain.nodes);
  return [...new Set([...inChains, ...group.nodes.map(({ name }) => name)])];
}

function linksOf(group) {
  return group.chains.flatMap(({ nodes, isClosed }) =>
    nodes.slice(0, isClosed ? undefined : -1).map((name, i) => [name, nodes[(i + 1) % nodes.length]]),
  );
}

export function RingDiagram({ group }) {
  const at = places(order(group));
  const known = new Map(group.nodes.map((node) => [node.name, node]));
  const title = `Ring of group ${group.group}: ${[...at.keys()].join(", then ")}`;
  const id = `arrow-${group.group}`;
  return html`
    <svg class="ring" viewBox=${viewBox(at.size)} role="img" aria-label=${title}>
      <defs>
        <marker id=${id} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">
          <path d="M0 0.5 8 4 0 7.5z" class="arrow" />
        </marker>
      </defs>
      ${linksOf(group).map(([from, to]) => html`<${Link} key=${from} from=${at.get(from)} to=${at.get(to)} marker=${id} />`)}
      ${[...at].map(([name, place]) => html`<${Node} key=${name} name=${name} place=${place} node=${known.get(name)} isLeader=${group.leaders.includes(name)} count=${at.size} />`)}
    </svg>
  `;
}

/** An arc of the circle between two nodes. */
function Link({ from, to, marker }) {
  if (!from || !to || from === to) return null;
  const radius = Math.hypot(from.x - CENTRE[0], from.y - CENTRE[1]);
  const short = (NODE + 5) / radius;
  const span = (to.angle - from.angle + 2 * Math.PI) % (2 * Math.PI);
  const point = (angle) =>
    `${(CENTRE[0] + radius * Math.cos(angle)).toFixed(1)} ${(CENTRE[1] + radius * Math.sin(angle)).toFixed(1)}`;
  const large = span - 2 * short > Math.PI ? 1 : 0;
  return html`<path class="link" marker-end=${`url(#${marker})`} d=${`M${point(from.angle + short)}A${radius} ${radius} 0 ${large} 1 ${point(to.angle - short)}`} />`;
}

const classOf = (node, isLeader) =>
  ["node", !node && "elsewhere", isLeader && "leads", node?.isSilent && "silent", node?.isAway && "away"]
    .filter(Boolean)
    .join(" ");

const stateOf = (node, isLeader) => {
  if (!node) return "in another store";
  if (node.isSilent) return `silent for ${age(node.writtenAgoMs)}`;
  return isLeader ? "leader" : node.isAway ? "away" : "";
};

function Node({ name, place, node, isLeader, count }) {
  const state = stateOf(node, isLeader);
  return html`
    <g class=${classOf(node, isLeader)}>
      ${isLeader && html`<circle cx=${place.x} cy=${place.y} r=${NODE + 4} class="halo" />`}
      <circle cx=${place.x} cy=${place.y} r=${NODE} />
      ${count > RADIAL_ABOVE ? html`<${RadialLabel} name=${name} place=${place} state=${state} />` : html`<${SideLabel} name=${name} place=${place} state=${state} isAlone=${count === 1} />`}
    </g>
  `;
}

function RadialLabel({ name, place: { angle, x, y }, state }) {
  const isLeft = Math.cos(angle) < 0;
  const turn = (angle * 180) / Math.PI + (isLeft ? 180 : 0);
  const from = [Math.cos(angle), Math.sin(angle)].map((each) => each * (NODE + 9));
  return html`
    <text transform=${`translate(${x + from[0]} ${y + from[1]}) rotate(${turn})`} dy="4" text-anchor=${isLeft ? "end" : "start"}>
      ${short(name)}${state && html` <tspan class="state">${state}</tspan>`}
    </text>
  `;
}

function SideLabel({ name, place, state, isAlone }) {
  const away = isAlone ? [0, 1] : [Math.cos(place.angle), Math.sin(place.angle)];
  const side = Math.abs(away[0]) < 0.3 ? "middle" : away[0] > 0 ? "start" : "end";
  const x = place.x + away[0] * (NODE + 9);
  const y = place.y + away[1] * (NODE + (side === "middle" ? 16 : 6));
  const up = away[1] < -0.3 && side === "middle" && state ? -13 : 0;
  return html`
    <text x=${x} y=${y + 4 + up} text-anchor=${side}>${short(name)}</text>
    ${state && html`<text x=${x} y=${y + 18 + up} text-anchor=${side} class="state">${state}</text>`}
  `;
}

const short = (name) => (name.length > 16 ? `${name.slice(0, 7)}…${name.slice(-8)}` : name);
