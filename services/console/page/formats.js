// Format numbers, sizes and times. Null, for unknown, becomes a dash.

import { signal } from "./html.js";

export const DASH = "–";
const whole = new Intl.NumberFormat("en");
const tenths = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [
  [DAY, "d", HOUR, "h"],
  [HOUR, "h", MINUTE, "min"],
  [MINUTE, "min", 1000, "s"],
];

const known = (write) => (value) => (value == null || Number.isNaN(value) ? DASH : write(value));

/** Format a number: 12,345; from ten million on 12.3 M, so that columns keep their width. */
export const count = known((n) => (Math.abs(n) < 1e7 ? whole.format(n) : `${tenths.format(n / 1e6)} M`));

/** Format a rate per second: 0.4, 12, 1,234. */
export const rate = known((n) => (Math.abs(n) < 10 ? tenths.format(n) : whole.format(Math.round(n))));

/** Format octets: 0 B, 1.5 KiB, 12 MiB. */
export const bytes = known((n) => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const step = n < 1024 ? 0 : Math.min(Math.floor(Math.log2(n) / 10), units.length - 1);
  const scaled = n / 1024 ** step;
  return `${scaled < 10 && step ? tenths.format(scaled) : whole.format(Math.round(scaled))} ${units[step]}`;
});

/** Format milliseconds as an age: 0.4 s, 12 s, 3 min 5 s, 2 h 10 min, 4 d 3 h. */
export const age = known((ms) => {
  if (ms < 10_000) return `${tenths.format(ms / 1000)} s`;
  for (const [large, unit, small, part] of STEPS) {
    if (ms >= large) {
      const rest = Math.floor((ms % large) / small);
      return `${Math.floor(ms / large)} ${unit}${rest ? ` ${rest} ${part}` : ""}`;
    }
  }
  return `${Math.round(ms / 1000)} s`;
});

/** Format milliseconds as a latency: 0.42 ms, 12 ms, 1.2 s. */
export const latency = known((ms) => {
  if (ms >= 10_000) return age(ms);
  if (ms >= 1000) return `${tenths.format(ms / 1000)} s`;
  return `${ms < 1 ? Number(ms.toPrecision(2)) : ms < 10 ? tenths.format(ms) : Math.round(ms)} ms`;
});

/** Format an ISO time in the local time zone: 12:03:04 today, else 24 Nov 12:03:04. */
export const time = known((text) => {
  const at = new Date(text);
  const isToday = at.toDateString() === new Date().toDateString();
  return isToday ? clock.format(at) : `${day.format(at)} ${clock.format(at)}`;
});

const TOLERANCE_MS = 1000; // smaller differences of clocks are ignored, to save redraws
const ahead = signal(0); // ms by which the store's clock is ahead of this computer's, which may be minutes off

let last = ""; // a repeated time is that of the console's last poll, so it is not current

/** Set the clock by the store's current time, an ISO time. */
export function syncClock(text) {
  if (text === last) return;
  last = text;
  const found = new Date(text) - Date.now();
  if (Math.abs(found - ahead.peek()) > TOLERANCE_MS) ahead.value = found;
}

/** Return the store's time in ms, as all times of the API are by the store's clock. */
export const now = () => Date.now() + ahead.value;

/** Return the ms since an ISO time; null if there is none. */
export const since = (text) => (text ? Math.max(now() - new Date(text), 0) : null);

/** Format a fraction: 0.5 → 50 %. */
export const share = known((part) => `${tenths.format(part * 100)} %`);

/** Format a text of the API as a sentence: 'no memory' → 'No memory.' */
export const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1).replace(/[.]$/, "")}.`;

/** Format a number with its noun: '1 queue', '12 queues'. */
export const several = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
