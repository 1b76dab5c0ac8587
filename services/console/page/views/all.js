// Which view belongs to which address: the first part of the route.

import { html } from "../html.js";
import { Empty } from "../parts/problem.js";
import { Head } from "../parts/fields.js";
import { Audit } from "./audit.js";
import { Config } from "./config.js";
import { Connections } from "./connections.js";
import { Dead } from "./dead.js";
import { Edges } from "./edges.js";
import { Jobs } from "./jobs.js";
import { Overview } from "./overview.js";
import { Peers } from "./peers.js";
import { Queue } from "./queue.js";
import { Queues } from "./queues.js";
import { Report } from "./report.js";
import { Reservations } from "./reservations.js";
import { Ring } from "./ring.js";
import { Subscriptions } from "./subscriptions.js";

export const VIEWS = {
  overview: { title: "Overview", View: Overview },
  queues: {
    title: "Queues",
    View: ({ parts }) =>
      parts[1] === undefined ? html`<${Queues} />` : html`<${Queue} key=${parts[1]} parts=${parts} />`,
  },
  dead: { title: "Dead letters", View: Dead },
  jobs: { title: "Jobs", View: Jobs },
  edges: { title: "Edges", View: Edges },
  connections: { title: "Connections", View: Connections },
  ring: { title: "Ring", View: Ring },
  peers: { title: "Peers", View: Peers },
  subscriptions: { title: "Subscriptions", View: Subscriptions },
  reservations: { title: "Reservations", View: Reservations },
  report: { title: "Report", View: Report },
  audit: { title: "Audit", View: Audit },
  config: { title: "Settings", View: Config },
};

export const Unknown = () => html`
  <${Head} title="There is no such page" />
  <${Empty} title="The address names nothing that this console has.">
    Perhaps it is of another version. <a href="#/overview">To the overview</a>
  <//>
`;
