// Who wants to look has to show a token. It stays in this tab's session storage and is sent with each request.

import { html, useState } from "../html.js";
import { read } from "../api.js";
import { reconnect } from "../live.js";
import { useDoing } from "../asking.js";
import { Mark } from "../parts/mark.js";
import { ProblemBox } from "../parts/problem.js";
import { keep, me, refused } from "../session.js";

export function SignIn() {
  const [typed, setTyped] = useState("");
  const doing = useDoing(async () => {
    keep(typed.trim());
    const { data } = await read("me");
    me.value = data;
    refused.value = "";
    reconnect();
  });
  const submit = (event) => {
    event.preventDefault();
    if (!typed.trim()) return;
    doing.run();
  };
  const isUnknown = doing.problem?.status === 401;
  return html`
    <main class="signin">
      <form onSubmit=${submit}>
        <h1><${Mark} /> Penstock</h1>
        <p class="soft">
          ${refused.value.trim() || "This console needs a token."} Without settings it is in the link that
          ${" "}<code>penstock up</code> prints, and in the file <code>console.token</code> of the data folder. Otherwise ask
          whoever runs it (setting <code>console.tokens</code>).
        </p>
        <label class="field">
          Token
          <input type="password" name="token" autocomplete="current-password" autofocus value=${typed} onInput=${(event) => setTyped(event.target.value)} />
        </label>
        ${doing.problem && !isUnknown && html`<${ProblemBox} problem=${doing.problem} />`}
        <button class="primary" disabled=${doing.isBusy}>${doing.isBusy ? "Looking…" : "Sign in"}</button>
      </form>
    </main>
  `;
}
