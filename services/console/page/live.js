// Follow the console's server-sent events. Read with fetch, as EventSource cannot send a token. A stream that breaks or goes
// silent is reopened, first at once and then every few seconds.

import { headers, problemOf } from "./api.js";
import { effect } from "./html.js";
import { clear, dispatch, link } from "./state.js";
import { refused } from "./session.js";

const URL = "api/v1/events";
const BACKOFF_MS = [250, 500, 1000, 2000, 4000];
const SILENCE_MS = 20_000; // the console sends at least a comment every 15 s

/** Return a parser that cuts chunks of text into events: feed('event: a\ndata: {}\n\n') → [['a', {}]]. */
export function eventParser() {
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
let running = null; // AbortController of the open stream

/** Reopen the stream at once. */
export function reconnect() {
  failures = 0;
  running?.abort();
  wake();
}

/** Keep a stream open, except while the user has to sign in. */
export async function follow() {
  for (;;) {
    if (!refused.peek()) await readStream();
    const wait = refused.peek() ? 3_600_000 : BACKOFF_MS[Math.min(failures++, BACKOFF_MS.length - 1)];
    setLink("lost", Date.now() + wait);
    await new Promise((done) => {
      wake = done;
      setTimeout(done, wait);
    });
  }
}

/** Read one stream until it ends or fails. */
async function readStream() {
  const early = globalThis.early; // early.js has opened the first one
  globalThis.early = null;
  const controller = (running = early?.controller ?? new AbortController());
  let timeout = setTimeout(() => controller.abort(), SILENCE_MS);
  try {
    const response = await (early?.answer ??
      fetch(URL, { headers: headers(), cache: "no-store", signal: controller.signal }));
    if (!response.ok) throw await problemOf(response);
    const feed = eventParser();
    for await (const text of chunks(response.body.pipeThrough(new TextDecoderStream()))) {
      clearTimeout(timeout);
      timeout = setTimeout(() => controller.abort(), SILENCE_MS);
      setLink("live");
      failures = 0;
      for (const [event, data] of feed(text)) dispatch(event, data);
    }
  } catch {
    // follow() reports the lost connection and reconnects in all cases
  } finally {
    clearTimeout(timeout);
  }
}

async function* chunks(stream) {
  const source = stream.getReader(); // not every browser can iterate over streams
  for (let next = await source.read(); !next.done; next = await source.read()) yield next.value;
}

function setLink(state, retryAt = 0) {
  const before = link.peek();
  const since = before.state === state ? before.since : Date.now();
  if (before.state !== state || before.retryAt !== retryAt) link.value = { state, since, retryAt };
}

// after signing out, or when the token is rejected, close the stream and drop what it sent
effect(() => {
  if (!refused.value) return;
  running?.abort();
  clear();
});
addEventListener("online", reconnect);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && link.peek().state === "lost") reconnect();
});
