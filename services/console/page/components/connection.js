// A banner while the connection to the console is lost, or the console cannot read the store.

import { html, useEffect, useState } from "../html.js";
import { reconnect } from "../live.js";
import { link, storeProblem } from "../state.js";

const GRACE_MS = 700; // a console that restarts within it causes no banner

export function ConnectionBanner() {
  const { state, since, retryAt } = link.value;
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (state !== "lost") return undefined;
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, [state]);
  const isLost = state === "lost" && now - since >= GRACE_MS;
  const wait = Math.max(Math.ceil((retryAt - now) / 1000), 0);
  return html`
    <div aria-live="assertive">
      ${
        isLost &&
        html`<p class="lost">
        <strong>Connection to the console lost.</strong> Figures are from
        ${" "}${new Date(since).toLocaleTimeString("en-GB")}.
        <span aria-hidden="true"> ${wait > 0 ? `Retrying in ${wait} s.` : "Retrying…"}</span>
        ${" "}<button class="small" onClick=${reconnect}>Retry now</button>
      </p>`
      }
      ${!isLost && storeProblem.value && html`<p class="lost"><strong>The console cannot read the store.</strong> Figures may be out of date (${storeProblem.value}).</p>`}
    </div>
  `;
}
