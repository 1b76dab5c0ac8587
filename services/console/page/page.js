// The frame around all views: sidebar, connection banner, and the view that the address names.

import { html, useEffect } from "./html.js";
import { helpIsOpen } from "./keys.js";
import { Help } from "./components/help.js";
import { ConnectionBanner } from "./components/connection.js";
import { Notices } from "./components/notices.js";
import { Sidebar } from "./components/sidebar.js";
import { route } from "./routes.js";
import { refused } from "./session.js";
import { viewOf } from "./views/registry.js";
import { SignIn } from "./views/signin.js";

export function Page() {
  if (refused.value) return html`<${SignIn} />`;
  const { parts } = route.value;
  const { title, View, key } = viewOf(parts);
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to content</a>
    <${Sidebar} />
    <main id="main" tabindex="-1">
      <${ConnectionBanner} />
      <${PageTitle} title=${title} parts=${parts} isLoaded=${View !== null} />
      ${View ? html`<${View} key=${key} parts=${parts} />` : html`<p class="soft loading" aria-busy="true">Loading…</p>`}
    </main>
    <${Notices} />
    ${helpIsOpen.value && html`<${Help} />`}
  `;
}

/** The hash is the route: following the link would leave the view. */
function skip(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

let isFirst = true;

/** Set the window's title and, when the view changes, scroll to the top and focus its heading. */
function PageTitle({ title, parts, isLoaded }) {
  const where = parts.join("/");
  useEffect(() => {
    if (!isLoaded) return;
    document.title = `${parts[1] ? `${parts[1]} – ` : ""}${title} – Penstock`;
    if (!isFirst) {
      scrollTo(0, 0);
      document.querySelector("main h1")?.focus({ preventScroll: true });
    }
    isFirst = false;
  }, [where, isLoaded]);
  return null;
}
