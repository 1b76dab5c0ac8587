// What all queues together did lately, for the plot of the overview: what the page has seen, and before that what the store's
// samples say; and when the steps of any history are. Points that are too far apart are not joined: nobody knows what was in between.

const KEPT_S = 15 * 60;
const FAR = 3; // times the usual distance

export const FLOWS = ["in", "out", "acked"];

/** seen: {at: [s], in: [], out: [], acked: []}; told: an overview. With one more point, and none that is too old. */
export function followed(seen, told) {
  const at = new Date(told.at).getTime() / 1000;
  if (seen.at.at(-1) >= at) return seen;
  const from = seen.at.findIndex((each) => each > at - KEPT_S);
  const kept = (values, value) => [...(from < 0 ? [] : values.slice(from)), value];
  return {
    at: kept(seen.at, at),
    ...Object.fromEntries(FLOWS.map((name) => [name, kept(seen[name], told.rates[name])])),
  };
}

/** s since 1970 of each step of a history. part: 0.5 = its middle, for what happened within it; 1 = its end, for how things stood. */
export const stepTimes = ({ from, stepMs, series }, part) =>
  series.in.map((_, i) => (new Date(from).getTime() + (i + part) * stepMs) / 1000);

/**
 * What the page has seen, behind what was before it came: 15 minutes of it. told: a history, or nothing; refreshMs: how often
 * the page is told. Between points that are more than three times as far apart as usual stands one of nulls, a gap.
 */
export function behind(told, seen, refreshMs) {
  const last = seen.at.at(-1) ?? Infinity;
  const first = seen.at[0] ?? Infinity;
  const times = told ? stepTimes(told, 0.5) : [];
  const wanted = times.map((each) => each < first && (last === Infinity || each > last - KEPT_S));
  const before = times.filter((_, i) => wanted[i]);
  const at = [...before, ...seen.at];
  const far = (FAR * refreshMs) / 1000;
  // the samples of the last seconds are not told yet, so the two always are a step or two apart
  const farBefore = Math.max((FAR * (told?.stepMs ?? 0)) / 1000, far);
  const isApart = at.map((each, i) => i > 0 && each - at[i - 1] > (i > before.length ? far : farBefore));
  const joined = (name) => [...(told?.series[name] ?? []).filter((_, i) => wanted[i]), ...seen[name]];
  const cut = (values, gap) => values.flatMap((value, i) => (isApart[i] ? [gap(i), value] : [value]));
  return {
    at: cut(at, (i) => (at[i - 1] + at[i]) / 2),
    ...Object.fromEntries(FLOWS.map((name) => [name, cut(joined(name), () => null)])),
  };
}
