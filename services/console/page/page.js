// The frame around all views: where one can go, how things stand, and the view that the address names.

import { html, useEffect } from "./html.js";
import { helpIsOpen } from "./keys.js";
import { Help } from "./parts/help.js";
import { Lost } from "./parts/lost.js";
import { Notices } from "./parts/notices.js";
import { Rail } from "./parts/rail.js";
import { route } from "./routes.js";
import { refused } from "./session.js";
import { VIEWS, Unknown } from "./views/all.js";
import { SignIn } from "./views/signin.js";

export function Page() {
  if (refused.value) return html`<${SignIn} />`;
  const { parts } = route.value;
  const view = VIEWS[parts[0]] ?? { title: "Not found", View: Unknown };
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <${Rail} />
    <main id="main" tabindex="-1">
      <${Lost} />
      <${Named} title=${view.title} parts=${parts} />
      <${view.View} parts=${parts} />
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
function Named({ title, parts }) {
  const where = parts.join("/");
  useEffect(() => {
    document.title = `${parts[1] ? `${parts[1]} – ` : ""}${title} – Penstock`;
    if (!isFirst) {
      scrollTo(0, 0);
      document.querySelector("main h1")?.focus({ preventScroll: true });
    }
    isFirst = false;
  }, [where]);
  return null;
}
