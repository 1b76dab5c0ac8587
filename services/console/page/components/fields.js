// Small components that many views share.

import { html, names, useState } from "../html.js";
import { refine, route } from "../routes.js";
import { age, count, DASH, since, time } from "../formats.js";
import { visibleName } from "../names.js";
import { notify } from "./notices.js";

/** A number; zero and unknown are dimmed. */
export const Figure = ({ value, format = count }) =>
  html`<span class=${names({ zero: !value })}>${format(value)}</span>`;

/** A time in the local time zone; the tooltip is the API's text. */
export const Time = ({ at }) => (at ? html`<time datetime=${at} title=${at}>${time(at)}</time>` : DASH);

export const Ago = ({ at }) =>
  at ? html`<time datetime=${at} title=${at}>${age(since(at))} ago</time>` : DASH;

/** tone: quiet, good, warn, bad. */
export const Badge = ({ tone = "quiet", title, children }) =>
  html`<span class=${`badge ${tone}`} title=${title}>${children}</span>`;

/** The filter field that `/` focuses; its text is kept in the address. */
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

/** A further field of a filter, kept in the address. read, write: convert between the address and the field. */
export const Field = ({ name, label, placeholder, list, type = "text", read = String, write = String }) => html`
  <label>${label}
    <input type=${type} value=${read(route.value.query[name] ?? "")} placeholder=${placeholder} list=${list} spellcheck="false"
      autocomplete="off" onInput=${(event) => refine({ [name]: write(event.target.value) })} />
  </label>
`;

/** One of several choices as buttons, kept in the address. choices: [[value, text]]; unset: the one that the address leaves out. */
export function Choice({ name, label, choices, unset = choices[0][0] }) {
  const chosen = route.value.query[name] ?? unset;
  return html`
    <div class="choice" role="group" aria-label=${label}>
      ${choices.map(
        ([value, text]) => html`
          <button
            key=${value}
            aria-pressed=${chosen === String(value) || chosen === value ? "true" : "false"}
            onClick=${() => refine({ [name]: value === unset ? "" : value })}
          >
            ${text}
          </button>
        `,
      )}
    </div>
  `;
}

/** The heading of a view with its actions. */
export const Head = ({ title, children, actions, above }) => html`
  <header class="head">
    <div>
      ${above && html`<p class="above">${above}</p>`}
      <h1 tabindex="-1">${visibleName(title)}</h1>
      ${children}
    </div>
    ${actions && html`<div class="actions">${actions}</div>`}
  </header>
`;

/** A list of names and values, [[name, value]]; empty values are left out. */
export const Facts = ({ facts, class: className = "" }) => html`
  <dl class=${`facts ${className}`}>
    ${facts
      .filter((fact) => fact && fact[1] != null && fact[1] !== "")
      .map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>
`;

export function Copy({ text, label = "Copy" }) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text); // undefined over plain HTTP, except at localhost
      notify("Copied to the clipboard.");
    } catch {
      notify("The browser does not allow copying here: select the text instead.");
    }
  };
  return html`<button class="small" onClick=${copy}>${label}</button>`;
}

/** Return [what is open or null, open, close]. */
export function useOpen() {
  const [open, setOpen] = useState(null);
  return [open, setOpen, () => setOpen(null)];
}

/** A warning that names the processes that did not answer. */
export const MissingProcesses = ({ pages: { silent } }) =>
  silent.length > 0 &&
  html`<p class="lost" role="status">Incomplete: no response from ${silent.join(", ")}.</p>`;

export const LoadMore = ({ pages, what }) =>
  pages.hasMore &&
  html`<p class="more"><button disabled=${pages.isBusy} onClick=${pages.more}>${pages.isBusy ? "Loading…" : `More ${what}`}</button></p>`;
