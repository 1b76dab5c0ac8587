// Errors: what happened, what to do about it, and a button to try again.

import { html } from "../html.js";
import { visibleName } from "../names.js";

export const ProblemBox = ({ problem, retry }) =>
  problem &&
  html`
    <div class="problem" role="alert">
      <p><strong>${problem.title}</strong>${problem.detail && problem.detail !== problem.title && `: ${visibleName(problem.detail)}`}</p>
      ${
        problem.errors?.length > 0 &&
        html`<ul>
        ${problem.errors.map(({ at, message }) => html`<li><code>${at || "document"}</code> ${message}</li>`)}
      </ul>`
      }
      ${problem.advice && html`<p class="soft">${problem.advice}</p>`}
      ${problem.instance && html`<p class="soft">Request ID: <code>${problem.instance}</code></p>`}
      ${retry && html`<button onClick=${retry}>Try again</button>`}
    </div>
  `;

/** A fetched resource: its problem, a line while it is loading, or what `children` renders. */
export const Loaded = ({ resource, children }) => html`
  <${ProblemBox} problem=${resource.problem} retry=${resource.reload} />
  ${resource.isLoading && html`<p class="soft loading" aria-busy="true">Loading…</p>`}
  ${resource.data && children(resource.data)}
`;

export const Empty = ({ title, children }) => html`
  <div class="empty"><p>${title}</p>${children && html`<p class="soft">${children}</p>`}</div>
`;
