// The frame around all views: where one can go, how things stand, and the view that the address names.

import { html, useEffect } from "./html.js";
import { helpIsOpen } from "./keys.js";
import { Help } from "./parts/help.js";
import { Lost } from "./parts/lost.js";
import { Notices } from "./parts/notices.js";
import { Rail } from "./parts/rail.js";
import { route } from "./routes.js";
import { refused } from "./session.js";
import { viewOf } from "./views/all.js";
import { SignIn } from "./views/signin.js";

export function Page() {
  if (refused.value) return html`<${SignIn} />`;
  const { parts } = route.value;
  const { title, View, key } = viewOf(parts);
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <${Rail} />
    <main id="main" tabindex="-1">
      <${Lost} />
      <${Named} title=${title} parts=${parts} isThere=${View !== null} />
      ${View ? html`<${View} key=${key} parts=${parts} />` : html`<p class="soft loading" aria-busy="true">Loading…</p>`}
    </main>
    <${Notices} />
    ${helpIsOpen.value && html`<${Help} />`}
  `;
}

/** The address is a route: a link to a place in the page would leave the view. */
function skip(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

let isFirst = true;

/** Another view: the window's title says so, and the keyboard begins at its top. */
function Named({ title, parts, isThere }) {
  const where = parts.join("/");
  useEffect(() => {
    if (!isThere) return;
    document.title = `${parts[1] ? `${parts[1]} – ` : ""}${title} – Penstock`;
    if (!isFirst) {
      scrollTo(0, 0);
      document.querySelector("main h1")?.focus({ preventScroll: true });
    }
    isFirst = false;
  }, [where, isThere]);
  return null;
}
