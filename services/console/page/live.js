// The stream of server-sent events, read by fetch as EventSource sends no token. A stream that breaks, or falls
// silent, is opened again, soon at first and then every few seconds.

import { headers, refusal } from "./api.js";
import { effect } from "./html.js";
import { clear, happened, link } from "./state.js";
import { refused } from "./session.js";

const URL = "api/v1/events";
const WAITS_MS = [250, 500, 1000, 2000, 4000];
const SILENCE_MS = 20_000; // the console sends a line every few seconds, if only a comment

/** Cuts text as it comes into events: feed('event: a\ndata: {}\n\n') → [['a', {}]]. */
export function reader() {
  let rest = "";
  return (text) => {
    const blocks = (rest + text).split(/\r?\n\r?\n/);
    rest = blocks.pop();
    return blocks.map(parsed).filter(Boolean);
  };
}

function parsed(block) {
  const lines = block.split(/\r?\n/);
  const of = (field) =>
    lines
      .filter((line) => line.startsWith(`${field}:`))
      .map((line) => line.slice(field.length + 1).trimStart());
  const data = of("data").join("\n");
  return data ? [of("event")[0] ?? "message", JSON.parse(data)] : null;
}

let wake = () => {};
let failures = 0;
let running = null; // AbortController of the stream that is open

/** Opens the stream anew at once: somebody asked for it, or signed in. */
export function reconnect() {
  failures = 0;
  running?.abort();
  wake();
}

/** Keeps a stream open for as long as nobody has to sign in. */
export async function follow() {
  for (;;) {
    if (!refused.peek()) await once();
    const wait = refused.peek() ? 3_600_000 : WAITS_MS[Math.min(failures++, WAITS_MS.length - 1)];
    tell("lost", Date.now() + wait);
    await new Promise((done) => {
      wake = done;
      setTimeout(done, wait);
    });
  }
}

/** One stream, until it ends however that comes. */
async function once() {
  const early = globalThis.early; // early.js has opened the first one
  globalThis.early = null;
  const controller = (running = early?.controller ?? new AbortController());
  let alarm = setTimeout(() => controller.abort(), SILENCE_MS);
  try {
    const answer = await (early?.answer ??
      fetch(URL, { headers: headers(), cache: "no-store", signal: controller.signal }));
    if (!answer.ok) throw await refusal(answer);
    const feed = reader();
    for await (const text of chunks(answer.body.pipeThrough(new TextDecoderStream()))) {
      clearTimeout(alarm);
      alarm = setTimeout(() => controller.abort(), SILENCE_MS);
      tell("live");
      failures = 0;
      for (const [event, told] of feed(text)) happened(event, told);
    }
  } catch {
    // whatever it was, the way on is the same: say so, and try again
  } finally {
    clearTimeout(alarm);
  }
}

async function* chunks(stream) {
  const source = stream.getReader(); // not every browser iterates over streams
  for (let next = await source.read(); !next.done; next = await source.read()) yield next.value;
}

function tell(state, retryAt = 0) {
  const before = link.peek();
  const since = before.state === state ? before.since : Date.now();
  if (before.state !== state || before.retryAt !== retryAt) link.value = { state, since, retryAt };
}

// whoever signs out, or is asked to sign in again, is told nothing more
effect(() => {
  if (!refused.value) return;
  running?.abort();
  clear();
});
addEventListener("online", reconnect);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && link.peek().state === "lost") reconnect();
});
