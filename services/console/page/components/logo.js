// The logo: a penstock, the gate in a channel.

import { html } from "../html.js";

export const Logo = () => html`
  <svg class="mark" viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">
    <path d="M1 6.5h5M1 13.5h5M14 6.5h5M14 13.5h5M1 10h5M14 10h5" stroke="currentColor" stroke-width="1.6" fill="none" />
    <path d="M8 1.5v17M12 1.5v17M8 4.5h4M8 8h4" stroke="currentColor" stroke-width="1.6" fill="none" />
    <rect x="8" y="11.5" width="4" height="7" fill="currentColor" />
  </svg>
`;
