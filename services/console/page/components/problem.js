// Errors: what happened, what to do about it, and a button to try again.

import { html } from "../html.js";
import { visibleName } from "../names.js";
import { href } from "../routes.js";
import { link } from "../state.js";

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

/** The problem of a fetched resource. While the connection is lost, the banner reports that for data that are still shown. */
export const ResourceProblem = ({ resource: { problem, data, reload } }) =>
  !(problem?.status === 0 && data && link.value.state === "lost") && html`<${ProblemBox} problem=${problem} retry=${reload} />`;

/** A fetched resource: its problem, a line while it is loading, or what `children` renders. */
export const Loaded = ({ resource, children }) => html`
  <${ResourceProblem} resource=${resource} />
  ${resource.isLoading && html`<p class="soft loading" aria-busy="true">Loading…</p>`}
  ${resource.data && children(resource.data)}
`;

/** Shown where a filter matches nothing. what: 'queue'; view: the first part of its route. */
export const NoMatch = ({ what, view }) => html`<${Empty} title=${`No ${what} matches.`}><a href=${href([view])}>Show all</a><//>`;

export const Empty = ({ title, children }) => html`
  <div class="empty"><p>${title}</p>${children && html`<p class="soft">${children}</p>`}</div>
`;
