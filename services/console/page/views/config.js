// The settings of the console's process, and whence each comes. What is secret is masked before it gets here.

import { html } from "../html.js";
import { useAsked } from "../asking.js";
import { Filter, Head } from "../parts/fields.js";
import { Asked, Empty } from "../parts/problem.js";
import { Table, Tally } from "../parts/table.js";
import { route } from "../routes.js";

/** A tree as [[path, value]]. */
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
    width: "55%",
    sort: (row) => row.name,
    cell: (row) => html`<code>${row.name}</code>`,
  },
  { key: "value", title: "Value", cell: (row) => html`<code>${row.value}</code>` },
  {
    key: "origin",
    title: "From",
    width: "12rem",
    prio: 2,
    sort: (row) => row.origin,
    cell: (row) => row.origin,
  },
];

export function Config() {
  const asked = useAsked("config");
  const { filter = "" } = route.value.query;
  return html`
    <${Head} title="Settings"><p class="soft">Of this process. Edges of other processes may have others: <code>penstock config</code> tells where they run.</p><//>
    <${Asked} asked=${asked}>
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
          <${Table} label="Settings" columns=${COLUMNS} rows=${rows} keyOf=${({ name }) => name} sort="name" empty=${html`<${Empty} title="No setting matches." />`} />
        `;
      }}
    <//>
  `;
}
