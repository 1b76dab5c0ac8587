// Message rates of all queues over time, for the overview's plot: what this page has received, preceded by the store's samples.
// Also the times of a history's steps. Points far apart are not joined by a line, as what was between them is unknown.

const KEPT_S = 15 * 60;
const GAP_FACTOR = 3; // times the usual distance

export const FLOWS = ["in", "out", "acked"];

/** Append an overview's rates to seen ({at: [s], in: [], out: [], acked: []}), and drop points that are too old. */
export function withSample(seen, overview) {
  const at = new Date(overview.at).getTime() / 1000;
  if (seen.at.at(-1) >= at) return seen;
  const from = seen.at.findIndex((each) => each > at - KEPT_S);
  const kept = (values, value) => [...(from < 0 ? [] : values.slice(from)), value];
  return {
    at: kept(seen.at, at),
    ...Object.fromEntries(FLOWS.map((name) => [name, kept(seen[name], overview.rates[name])])),
  };
}

/** Return each step's time in s since 1970. part: 0.5 = the middle of a step, for rates; 1 = its end, for sizes. */
export const stepTimes = ({ from, stepMs, series }, part) =>
  series.in.map((_, i) => (new Date(from).getTime() + (i + part) * stepMs) / 1000);

/**
 * Return up to 15 minutes of rates: the history from before the page was opened, then what the page has seen.
 *
 * history: a response of the API, or undefined. refreshMs: the interval of the event stream. A point of nulls, which the plot draws
 * as a gap, is inserted where points are more than three times as far apart as usual.
 */
export function withHistory(history, seen, refreshMs) {
  const last = seen.at.at(-1) ?? Infinity;
  const first = seen.at[0] ?? Infinity;
  const times = history ? stepTimes(history, 0.5) : [];
  const wanted = times.map((each) => each < first && (last === Infinity || each > last - KEPT_S));
  const before = times.filter((_, i) => wanted[i]);
  const at = [...before, ...seen.at];
  const far = (GAP_FACTOR * refreshMs) / 1000;
  // samples of the last seconds are not in the history yet, so it always ends a step or two before the first point
  const farBefore = Math.max((GAP_FACTOR * (history?.stepMs ?? 0)) / 1000, far);
  const isApart = at.map((each, i) => i > 0 && each - at[i - 1] > (i > before.length ? far : farBefore));
  const joined = (name) => [...(history?.series[name] ?? []).filter((_, i) => wanted[i]), ...seen[name]];
  const cut = (values, gap) => values.flatMap((value, i) => (isApart[i] ? [gap(i), value] : [value]));
  return {
    at: cut(at, (i) => (at[i - 1] + at[i]) / 2),
    ...Object.fromEntries(FLOWS.map((name) => [name, cut(joined(name), () => null)])),
  };
}
