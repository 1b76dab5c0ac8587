// A ring as it is drawn on paper: nodes on a circle, an arrow from each to its successor, a gap where nobody is linked.
// The table below it says the same in words.

import { html } from "../html.js";
import { age } from "../formats.js";

const WIDTH = 440;
const HEIGHT = 310;
const CENTRE = [WIDTH / 2, HEIGHT / 2];
const NODE = 15; // radius

/** Where nodes stand, in the order of the ring: Map name → {x, y, angle}. */
export function places(nodeNames) {
  const radius = nodeNames.length === 1 ? 0 : 98;
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

/** Names in the order of the ring: chains one after the other, then whoever is in none. */
export function order(group) {
  const inChains = group.chains.flatMap((chain) => chain.nodes);
  return [...new Set([...inChains, ...group.nodes.map(({ name }) => name)])];
}

function linksOf(group) {
  return group.chains.flatMap(({ nodes, isClosed }) =>
    nodes.slice(0, isClosed ? undefined : -1).map((name, i) => [name, nodes[(i + 1) % nodes.length]]),
  );
}

export function RingPicture({ group }) {
  const at = places(order(group));
  const told = new Map(group.nodes.map((node) => [node.name, node]));
  const title = `Ring of group ${group.group}: ${[...at.keys()].join(", then ")}`;
  const id = `arrow-${group.group}`;
  return html`
    <svg class="ring" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label=${title}>
      <defs>
        <marker id=${id} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">
          <path d="M0 0.5 8 4 0 7.5z" class="arrow" />
        </marker>
      </defs>
      ${linksOf(group).map(([from, to]) => html`<${Link} key=${from} from=${at.get(from)} to=${at.get(to)} marker=${id} />`)}
      ${[...at].map(([name, place]) => html`<${Node} key=${name} name=${name} place=${place} node=${told.get(name)} leads=${group.leaders.includes(name)} isAlone=${at.size === 1} />`)}
    </svg>
  `;
}

/** An arc on the circle, from edge to edge of the nodes. */
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

const lookOf = (node, leads) =>
  ["node", !node && "elsewhere", leads && "leads", node?.isSilent && "silent", node?.isAway && "away"]
    .filter(Boolean)
    .join(" ");

const stateOf = (node, leads) => {
  if (!node) return "with another store";
  if (node.isSilent) return `silent for ${age(node.writtenAgoMs)}`;
  return leads ? "leader" : node.isAway ? "away" : "";
};

function Node({ name, place, node, leads, isAlone }) {
  const away = isAlone ? [0, 1] : [Math.cos(place.angle), Math.sin(place.angle)];
  const side = Math.abs(away[0]) < 0.3 ? "middle" : away[0] > 0 ? "start" : "end";
  const x = place.x + away[0] * (NODE + 9);
  const y = place.y + away[1] * (NODE + (side === "middle" ? 16 : 6));
  const state = stateOf(node, leads);
  const up = away[1] < -0.3 && side === "middle" && state ? -13 : 0;
  return html`
    <g class=${lookOf(node, leads)}>
      ${leads && html`<circle cx=${place.x} cy=${place.y} r=${NODE + 4} class="halo" />`}
      <circle cx=${place.x} cy=${place.y} r=${NODE} />
      <text x=${x} y=${y + 4 + up} text-anchor=${side}>${short(name)}</text>
      ${state && html`<text x=${x} y=${y + 18 + up} text-anchor=${side} class="state">${state}</text>`}
    </g>
  `;
}

const short = (name) => (name.length > 16 ? `${name.slice(0, 7)}…${name.slice(-8)}` : name);
