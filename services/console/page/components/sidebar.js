// The sidebar: links to all views, and the state of the connection and the store.

import { html, names, signal, useEffect } from "../html.js";
import { bytes, count } from "../formats.js";
import { helpIsOpen, SHORTCUTS } from "../keys.js";
import { href, route } from "../routes.js";
import { forget, may, me, REQUIRED_ROLE } from "../session.js";
import { deadTotal, edges, link, overview, queues, runningJobs, storeProblem, version } from "../state.js";
import { THEMES, theme } from "../themes.js";
import { Logo } from "./logo.js";

const isOpen = signal(false); // on narrow screens

const GROUPS = [
  ["", ["overview", "queues", "dead", "jobs"]],
  ["Connectivity", ["edges", "connections", "ring", "peers", "subscriptions", "reservations"]],
  ["Records", ["report", "audit", "config"]],
];
const TITLES = {
  ...Object.fromEntries(SHORTCUTS.map(([, place, title]) => [place, title])),
  config: "Settings",
};
const KEY_OF = Object.fromEntries(SHORTCUTS.map(([letter, place]) => [place, letter]));
const WARN_ABOVE = 0.6; // of the store's memory
const FULL_ABOVE = 0.75; // puts are refused (docs/store.md, Bounds); PUBLISH_LIMIT of the store

const figures = {
  queues: () => queues.value.size || null,
  dead: () => deadTotal.value || null,
  jobs: () => runningJobs.value.length || null,
  edges: () => edges.value?.length ?? null,
  connections: () => overview.value?.totals.connections ?? null,
};

export function Sidebar() {
  const { parts } = route.value;
  useEffect(() => void (isOpen.value = false), [parts.join("/")]);
  return html`
    <header class=${names({ sidebar: true, open: isOpen.value })}>
      <div class="brand">
        <a href="#/overview"><${Logo} /> Penstock</a>
        <${Link} />
        <button class="menu" aria-expanded=${isOpen.value ? "true" : "false"} aria-controls="ways" onClick=${() => (isOpen.value = !isOpen.value)}>Menu</button>
      </div>
      <div id="ways" class="ways">
        <nav aria-label="Views">${GROUPS.map(([title, places]) => html`<${Group} key=${title} title=${title} places=${places} here=${parts[0]} />`)}</nav>
        <${Footer} />
      </div>
    </header>
  `;
}

function Group({ title, places, here }) {
  const allowed = places.filter((place) => !REQUIRED_ROLE[place] || may(REQUIRED_ROLE[place]));
  return html`
    ${title && html`<h2>${title}</h2>`}
    <ul>
      ${allowed.map((place) => html`<li key=${place}><${NavLink} place=${place} isHere=${here === place} /></li>`)}
    </ul>
  `;
}

function NavLink({ place, isHere }) {
  const figure = figures[place]?.();
  const keys = KEY_OF[place] && `g ${KEY_OF[place]}`;
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
  noStore: ["bad", "No store"],
};

/** Whether the figures are current: the page follows the console, and the console can read the store. */
function Link() {
  const { state } = link.value;
  const [tone, text] = LINKS[state === "live" && storeProblem.value ? "noStore" : state];
  return html`<span class=${`link ${tone}`} title="Whether the figures are current">${text}</span>`;
}

function Footer() {
  const { store } = overview.value ?? {};
  return html`
    <div class="status">
      ${store && html`<${Memory} store=${store} />`}
      <div class="choice" role="group" aria-label="Theme">
        ${THEMES.map((each) => html`<button key=${each} aria-pressed=${theme.value === each ? "true" : "false"} onClick=${() => (theme.value = each)}>${each}</button>`)}
      </div>
      <p class="who">
        ${me.value && html`<span title="Your role">${me.value.role}</span>`}
        ${me.value?.who && html`<span class="soft">${me.value.who}</span>`}
        ${me.value?.auth === "token" && html`<button class="small" onClick=${() => forget("You have signed out.")}>Sign out</button>`}
      </p>
      <p class="about">
        <span class="soft">Penstock ${version.value}</span>
        <button class="small" aria-label="Keyboard shortcuts" onClick=${() => (helpIsOpen.value = true)}>?</button>
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
        html`<div class=${`bar-of ${part > FULL_ABOVE ? "bad" : part > WARN_ABOVE ? "warn" : ""}`} role="meter" aria-label="Store memory" aria-valuemin="0" aria-valuemax="100" aria-valuenow=${Math.round(part * 100)} title=${`of ${bytes(store.maxBytes)}`}>
          <i style=${{ width: `${Math.max(part * 100, 0.7)}%` }}></i>
        </div>`
      }
    </div>
  `;
}
