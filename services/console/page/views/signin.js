// The sign-in form. The token stays in this tab's session storage and is sent with each request.

import { html, useState } from "../html.js";
import { read } from "../api.js";
import { reconnect } from "../live.js";
import { useAction } from "../fetching.js";
import { Logo } from "../components/logo.js";
import { ProblemBox } from "../components/problem.js";
import { keep, me, refused } from "../session.js";

export function SignIn() {
  const [typed, setTyped] = useState("");
  const action = useAction(async () => {
    keep(typed.trim());
    const { data } = await read("me");
    me.value = data;
    refused.value = "";
    reconnect();
  });
  const submit = (event) => {
    event.preventDefault();
    if (!typed.trim()) return;
    action.run();
  };
  const isUnknown = action.problem?.status === 401;
  return html`
    <main class="signin">
      <form onSubmit=${submit}>
        <h1><${Logo} /> Penstock</h1>
        <p class="soft">
          ${refused.value.trim() || "This console requires a token."} By default, the token is in the link that
          ${" "}<code>penstock up</code> prints and in the file <code>console.token</code> of the data folder. If tokens are configured
          (<code>console.tokens</code>), ask the console's administrator.
        </p>
        <label class="field">
          Token
          <input type="password" name="token" autocomplete="current-password" autofocus value=${typed} onInput=${(event) => setTyped(event.target.value)} />
        </label>
        ${action.problem && !isUnknown && html`<${ProblemBox} problem=${action.problem} />`}
        <button class="primary" disabled=${action.isBusy}>${action.isBusy ? "Signing in…" : "Sign in"}</button>
      </form>
    </main>
  `;
}
