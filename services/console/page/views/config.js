// The settings of the console's process and their sources. The API masks secrets.

import { html } from "../html.js";
import { useResource } from "../fetching.js";
import { Filter, Head } from "../components/fields.js";
import { Loaded, NoMatch } from "../components/problem.js";
import { Table, Tally } from "../components/table.js";
import { route } from "../routes.js";

/** Flatten a tree to [[path, value]]. */
function leaves(tree, path = []) {
  return Object.entries(tree).flatMap(([name, value]) =>
    value && typeof value === "object" && !Array.isArray(value) && Object.keys(value).length
      ? leaves(value, [...path, name])
      : [[[...path, name].join("."), value]],
  );
}

const COLUMNS = [
  {
    key: "name",
    title: "Setting",
    isHead: true,
    width: "min(24rem, 58vw)",
    sort: (row) => row.name,
    cell: (row) => html`<code>${row.name}</code>`,
  },
  { key: "value", title: "Value", cell: (row) => html`<code>${row.value}</code>` },
  {
    key: "origin",
    title: "Source",
    width: "36%",
    prio: 2,
    sort: (row) => row.origin,
    cell: (row) => row.origin,
  },
];

export function Config() {
  const resource = useResource("config");
  const { filter = "" } = route.value.query;
  return html`
    <${Head} title="Settings"><p class="soft">Settings of this console process. Edges may differ: run <code>penstock config</code> where they run.</p><//>
    <${Loaded} resource=${resource}>
      ${({ settings, origins }) => {
        const all = leaves(settings).map(([name, value]) => ({
          name,
          value: typeof value === "string" ? value : JSON.stringify(value),
          origin: origins[name] ?? "default",
        }));
        const rows = all.filter((row) =>
          `${row.name} ${row.value} ${row.origin}`.toLowerCase().includes(filter.toLowerCase()),
        );
        return html`
          <div class="tools"><${Filter} label="Filter settings" /><${Tally} shown=${rows.length} all=${all.length} one="setting" /></div>
          <${Table} label="Settings" columns=${COLUMNS} rows=${rows} keyOf=${({ name }) => name} sort="name" empty=${html`<${NoMatch} what="setting" view="config" />`} />
        `;
      }}
    <//>
  `;
}
