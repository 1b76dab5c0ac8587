// Said in plain sight: the page does not follow any more, or the console cannot see the store. Both end by themselves.

import { html, useEffect, useState } from "../html.js";
import { reconnect } from "../live.js";
import { link, trouble } from "../state.js";

const GRACE_MS = 700; // a console that is started again within it is not worth a word

export function Lost() {
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
        <strong>The connection to the console is lost.</strong> What you see is of
        ${" "}${new Date(since).toLocaleTimeString("en-GB")}.
        <span aria-hidden="true"> ${wait > 0 ? `Trying again in ${wait} s.` : "Trying again…"}</span>
        ${" "}<button class="small" onClick=${reconnect}>Try now</button>
      </p>`
      }
      ${!isLost && trouble.value && html`<p class="lost"><strong>The console cannot see the store.</strong> What you see may be out of date (${trouble.value}).</p>`}
    </div>
  `;
}
