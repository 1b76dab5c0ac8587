// Where we are, as the part of the address behind `#`: `#/queues/orders/dead?reason=expired`. Everything that a
// person would like to come back to is in it, so that it can be bookmarked and sent to others.

import { signal } from "./html.js";
import { decodeName, encodeName } from "./names.js";

const START = "#/overview";

/** '#/queues/a%2Fb?sort=-ready' → {parts: ['queues', 'a/b'], query: {sort: '-ready'}}. */
export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean).map(decodeName);
  return { parts, query: Object.fromEntries(new URLSearchParams(query)) };
}

/** The other way round; what is empty is left out. */
export function href(parts, query = {}) {
  const said = Object.entries(query).filter(([, value]) => value !== "" && value != null && value !== false);
  const text = new URLSearchParams(said).toString();
  return `#/${parts.map(encodeName).join("/")}${text && "?"}${text}`;
}

export const route = signal(parse(location.hash || START));

addEventListener("hashchange", () => (route.value = parse(location.hash || START)));

export const go = (parts, query) => (location.hash = href(parts, query));

/** Changes what is asked for without a step in the history: filters, sorting, ranges of plots. */
export function refine(changes) {
  const { parts, query } = route.value;
  const next = href(parts, { ...query, ...changes });
  history.replaceState(null, "", next);
  route.value = parse(next);
}
