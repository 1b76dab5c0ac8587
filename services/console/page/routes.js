// The route: the part of the address behind `#`, as in `#/queues/orders/dead?reason=expired`. It holds the view and its filters, so
// that it can be bookmarked and shared.

import { signal } from "./html.js";
import { decodeName, encodeName } from "./names.js";

const START = "#/overview";

/** Parse a hash: '#/queues/a%2Fb?sort=-ready' → {parts: ['queues', 'a/b'], query: {sort: '-ready'}}. */
export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean).map(decodeName);
  return { parts, query: Object.fromEntries(new URLSearchParams(query)) };
}

/** Build a hash; empty values of the query are left out. */
export function href(parts, query = {}) {
  const pairs = Object.entries(query).filter(([, value]) => value !== "" && value != null && value !== false);
  const text = new URLSearchParams(pairs).toString();
  return `#/${parts.map(encodeName).join("/")}${text && "?"}${text}`;
}

export const route = signal(parse(location.hash || START));

addEventListener("hashchange", () => (route.value = parse(location.hash || START)));

export const go = (parts, query) => (location.hash = href(parts, query));

/** Change the query (filters, sorting, ranges of plots) without a new entry in the browser's history. */
export function refine(changes) {
  const { parts, query } = route.value;
  const next = href(parts, { ...query, ...changes });
  history.replaceState(null, "", next);
  route.value = parse(next);
}
