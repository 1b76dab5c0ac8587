// The way to all views, and below it how the store and the connection to it are.

import { html, names, signal, useEffect } from "../html.js";
import { bytes, count } from "../formats.js";
import { helpIsOpen, PLACES } from "../keys.js";
import { href, route } from "../routes.js";
import { forget, may, me, NEEDS } from "../session.js";
import { deadTotal, edges, link, overview, queues, running, trouble, version } from "../state.js";
import { THEMES, theme } from "../themes.js";
import { Mark } from "./mark.js";

const isOpen = signal(false); // on narrow screens

const GROUPS = [
  ["", ["overview", "queues", "dead", "jobs"]],
  ["On the wire", ["edges", "connections", "ring", "peers", "subscriptions", "reservations"]],
  ["On record", ["report", "audit", "config"]],
];
const TITLES = {
  ...Object.fromEntries(PLACES.map(([, place, title]) => [place, title])),
  config: "Settings",
};
const LETTERS = Object.fromEntries(PLACES.map(([letter, place]) => [place, letter]));
const NEAR = 0.6; // of the store's memory
const SHUT = 0.75; // above it puts are refused (docs/store.md, Bounds)

const figures = {
  queues: () => queues.value.size || null,
  dead: () => deadTotal.value || null,
  jobs: () => running.value.length || null,
  edges: () => edges.value?.length ?? null,
  connections: () => overview.value?.totals.connections ?? null,
};

export function Rail() {
  const { parts } = route.value;
  useEffect(() => void (isOpen.value = false), [parts.join("/")]);
  return html`
    <header class=${names({ rail: true, open: isOpen.value })}>
      <div class="brand">
        <a href="#/overview"><${Mark} /> Penstock</a>
        <${Link} />
        <button class="menu" aria-expanded=${isOpen.value ? "true" : "false"} aria-controls="ways" onClick=${() => (isOpen.value = !isOpen.value)}>Menu</button>
      </div>
      <div id="ways" class="ways">
        <nav aria-label="Views">${GROUPS.map(([title, places]) => html`<${Group} key=${title} title=${title} places=${places} here=${parts[0]} />`)}</nav>
        <${Standing} />
      </div>
    </header>
  `;
}

function Group({ title, places, here }) {
  const allowed = places.filter((place) => !NEEDS[place] || may(NEEDS[place]));
  return html`
    ${title && html`<h2>${title}</h2>`}
    <ul>
      ${allowed.map((place) => html`<li key=${place}><${Way} place=${place} isHere=${here === place} /></li>`)}
    </ul>
  `;
}

function Way({ place, isHere }) {
  const figure = figures[place]?.();
  const keys = LETTERS[place] && `g ${LETTERS[place]}`;
  return html`
    <a href=${href([place])} aria-current=${isHere ? "page" : undefined} title=${keys}>
      ${TITLES[place]}
      ${figure != null && html`<span class=${names({ figure: true, bad: place === "dead" })}>${count(figure)}</span>`}
    </a>
  `;
}

const LINKS = {
  live: ["live", "Live"],
  connecting: ["", "Loading"],
  lost: ["bad", "Offline"],
  blind: ["bad", "No store"],
};

/** Whether what is shown is of now: the page follows the console, and the console sees the store. */
function Link() {
  const { state } = link.value;
  const [tone, text] = LINKS[state === "live" && trouble.value ? "blind" : state];
  return html`<span class=${`link ${tone}`} title="Whether the page shows how things stand now">${text}</span>`;
}

function Standing() {
  const { store } = overview.value ?? {};
  return html`
    <div class="standing">
      ${store && html`<${Memory} store=${store} />`}
      <div class="choice" role="group" aria-label="Colours">
        ${THEMES.map((each) => html`<button key=${each} aria-pressed=${theme.value === each ? "true" : "false"} onClick=${() => (theme.value = each)}>${each}</button>`)}
      </div>
      <p class="who">
        ${me.value && html`<span title="Your role">${me.value.role}</span>`}
        ${me.value?.who && html`<span class="soft">${me.value.who}</span>`}
        ${me.value?.auth === "token" && html`<button class="small" onClick=${() => forget("You are signed out.")}>Sign out</button>`}
      </p>
      <p class="about">
        <span class="soft">Penstock ${version.value}</span>
        <button class="small" aria-label="Keyboard and help" onClick=${() => (helpIsOpen.value = true)}>?</button>
      </p>
    </div>
  `;
}

function Memory({ store }) {
  const part = store.maxBytes ? store.usedBytes / store.maxBytes : null;
  return html`
    <div class="memory">
      <p>${store.server} ${store.version}<span class="right">${bytes(store.usedBytes)}</span></p>
      ${
        part !== null &&
        html`<div class=${`bar-of ${part > SHUT ? "bad" : part > NEAR ? "warn" : ""}`} role="meter" aria-label="Memory of the store" aria-valuemin="0" aria-valuemax="100" aria-valuenow=${Math.round(part * 100)} title=${`of ${bytes(store.maxBytes)}`}>
          <i style=${{ width: `${Math.max(part * 100, 0.7)}%` }}></i>
        </div>`
      }
    </div>
  `;
}
