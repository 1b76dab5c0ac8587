// Small things that many views share.

import { html, names, useState } from "../html.js";
import { refine, route } from "../routes.js";
import { age, count, DASH, since, time } from "../formats.js";
import { seen } from "../names.js";
import { say } from "./notices.js";

/** A number; nothing is dimmed, so that what is something stands out. */
export const Figure = ({ value, write = count }) =>
  html`<span class=${names({ zero: !value })}>${write(value)}</span>`;

/** A point of time: here, and on pointing at it as the console has it. */
export const Time = ({ at }) => (at ? html`<time datetime=${at} title=${at}>${time(at)}</time>` : DASH);

export const Ago = ({ at }) =>
  at ? html`<time datetime=${at} title=${at}>${age(since(at))} ago</time>` : DASH;

/** tone: quiet, good, warn, bad. */
export const Badge = ({ tone = "quiet", title, children }) =>
  html`<span class=${`badge ${tone}`} title=${title}>${children}</span>`;

/** The field that `/` goes to; what is typed is kept in the address. */
export const Filter = ({ name = "filter", label, placeholder }) => html`
  <label class="filter">
    <span class="unseen">${label}</span>
    <input
      type="search"
      data-filter
      placeholder=${placeholder ?? label}
      title="/"
      spellcheck="false"
      autocomplete="off"
      value=${route.value.query[name] ?? ""}
      onInput=${(event) => refine({ [name]: event.target.value })}
    />
  </label>
`;

/** One part of a filter; kept in the address, as it is read and written there. */
export const Field = ({ name, label, placeholder, list, type = "text", read = String, write = String }) => html`
  <label>${label}
    <input type=${type} value=${read(route.value.query[name] ?? "")} placeholder=${placeholder} list=${list} spellcheck="false"
      autocomplete="off" onInput=${(event) => refine({ [name]: write(event.target.value) })} />
  </label>
`;

/** One of several, as buttons; kept in the address. choices: [[value, text]]; unsaid: the one that the address leaves out. */
export function Choice({ name, label, choices, unsaid = choices[0][0] }) {
  const chosen = route.value.query[name] ?? unsaid;
  return html`
    <div class="choice" role="group" aria-label=${label}>
      ${choices.map(
        ([value, text]) => html`
          <button
            key=${value}
            aria-pressed=${chosen === String(value) || chosen === value ? "true" : "false"}
            onClick=${() => refine({ [name]: value === unsaid ? "" : value })}
          >
            ${text}
          </button>
        `,
      )}
    </div>
  `;
}

/** The head of a page: its name, what is to be known at once, and what can be done. */
export const Head = ({ title, children, actions, above }) => html`
  <header class="head">
    <div>
      ${above && html`<p class="above">${above}</p>`}
      <h1 tabindex="-1">${seen(title)}</h1>
      ${children}
    </div>
    ${actions && html`<div class="actions">${actions}</div>`}
  </header>
`;

/** Names and values: [[name, value]]; what is null is left out. */
export const Facts = ({ facts, class: look = "" }) => html`
  <dl class=${`facts ${look}`}>
    ${facts
      .filter((fact) => fact && fact[1] != null && fact[1] !== "")
      .map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>
`;

export function Copy({ text, label = "Copy" }) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text); // there is none on plain HTTP, but at localhost
      say("Copied.");
    } catch {
      say("This browser does not let the page copy: mark the text instead.");
    }
  };
  return html`<button class="small" onClick=${copy}>${label}</button>`;
}

/** Opens something, and closes it: [what is open or null, open, close]. */
export function useOpen() {
  const [open, setOpen] = useState(null);
  return [open, setOpen, () => setOpen(null)];
}

/** Processes that were asked and did not answer: what they would have told is missing. */
export const Silent = ({ pages: { silent } }) =>
  silent.length > 0 &&
  html`<p class="lost" role="status">Not all of it: ${silent.join(", ")} did not answer.</p>`;

export const More = ({ pages, what }) =>
  pages.hasMore &&
  html`<p class="more"><button disabled=${pages.isBusy} onClick=${pages.more}>${pages.isBusy ? "Loading…" : `More ${what}`}</button></p>`;
