// What was refused, in words: what happened, what to do about it, and how to go on.

import { html } from "../html.js";
import { seen } from "../names.js";

export const ProblemBox = ({ problem, again }) =>
  problem &&
  html`
    <div class="problem" role="alert">
      <p><strong>${problem.title}</strong>${problem.detail && problem.detail !== problem.title && `: ${seen(problem.detail)}`}</p>
      ${
        problem.errors?.length > 0 &&
        html`<ul>
        ${problem.errors.map(({ at, message }) => html`<li><code>${at || "document"}</code> ${message}</li>`)}
      </ul>`
      }
      ${problem.advice && html`<p class="soft">${problem.advice}</p>`}
      ${problem.instance && html`<p class="soft">Number: <code>${problem.instance}</code></p>`}
      ${again && html`<button onClick=${again}>Try again</button>`}
    </div>
  `;

/** What is asked for: a problem, a line while it is on its way, or what `children` make of it. */
export const Asked = ({ asked, children }) => html`
  <${ProblemBox} problem=${asked.problem} again=${asked.again} />
  ${asked.isLoading && html`<p class="soft loading" aria-busy="true">Loading…</p>`}
  ${asked.data && children(asked.data)}
`;

export const Empty = ({ title, children }) => html`
  <div class="empty"><p>${title}</p>${children && html`<p class="soft">${children}</p>`}</div>
`;
