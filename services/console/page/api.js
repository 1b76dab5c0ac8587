// Questions to the console. What it refuses comes as a Problem, in words that say what to do.

import { encodeName } from "./names.js";
import { forget, me, takeLinked, token } from "./session.js";

const ROOT = "api/v1/"; // relative, so that it also works below a path of a proxy
const SIGN_IN = "The console did not take this token. Perhaps it was withdrawn, or mistyped.";

/** What to do about it, by status; what the console itself says comes before that. */
const ADVICE = {
  0: "The console does not answer. It may be starting again: the page comes back by itself when it does.",
  400: "Change what is marked and try again.",
  403: "Your role does not allow it. Ask whoever runs the console for a token with more rights.",
  404: "It may have been removed meanwhile.",
  409: "Look at how it stands now, and decide again.",
  412: "Somebody changed it meanwhile, so nothing was done. Look at how it stands now, then try again.",
  413: "It is too large for one request.",
  422: "Change what is marked and try again.",
  429: "Wait a moment and try again.",
  500: "This is a fault of the console: its log tells more, under the number below.",
  502: "The console, or a proxy before it, is not well. Try again in a moment.",
  503: "The store does not answer the console. Nothing was done; try again in a moment.",
  504: "It took too long. It may or may not have been done: look before you try again.",
  507: "The store has no room left. Let consumers take messages, or give it more memory.",
};

/** What to do about what the status alone does not tell, by the problem's label. */
const ADVICE_FOR = {
  queue_full: "Let consumers take messages out of the queue, or raise its bounds.",
};

export class Problem extends Error {
  /** told: a problem+json document, or what we know ourselves. */
  constructor(told) {
    super(told.detail || told.title || "Something went wrong");
    this.status = told.status ?? 0;
    this.title = told.title || (this.status ? `Refused (${this.status})` : "No connection");
    this.detail = told.detail ?? "";
    this.label = told.label ?? "";
    this.instance = this.status >= 500 ? (told.instance ?? "") : "";
    this.errors = told.errors ?? []; // [{at, message}]
    this.advice = told.advice ?? ADVICE_FOR[this.label] ?? ADVICE[this.status] ?? "";
  }
}

/** An address below the API: at`queues/${name}/dead`, each part encoded. */
export const at = (texts, ...parts) => String.raw({ raw: texts }, ...parts.map(encodeName));

export function headers(more = {}) {
  return token.peek() ? { ...more, Authorization: `Bearer ${token.peek()}` } : more;
}

function address(path, query = {}) {
  const said = Object.entries(query).flatMap(([name, value]) => [value].flat().map((one) => [name, one]));
  const text = new URLSearchParams(said.filter(([, value]) => value !== "" && value != null)).toString();
  return ROOT + path + (text && "?") + text;
}

/** The answer itself. Throws Problem; AbortError if `signal` says so. */
export async function request(method, path, { query, body, etag, create, signal } = {}) {
  refuseSteps(path);
  const sent = { Accept: "application/json" };
  if (body !== undefined) sent["Content-Type"] = "application/json";
  if (etag) sent["If-Match"] = etag;
  if (create) sent["If-None-Match"] = "*";
  const answer = await reached(address(path, query), {
    method,
    headers: headers(sent),
    body: body === undefined ? undefined : JSON.stringify(body),
    cache: "no-store",
    signal,
  });
  if (!answer.ok) throw await refusal(answer);
  return answer;
}

/** Browsers take a queue's name `..` for a step on the way, however it is written, and would ask for something else. */
function refuseSteps(path) {
  if (!path.split("/").some((part) => part === "." || part === "..")) return;
  throw new Problem({
    status: 400,
    title: "No browser can ask for this name",
    detail: "it would be taken for a step in an address",
    advice: "The command line knows it by the same name.",
  });
}

async function reached(url, how) {
  try {
    return await fetch(url, how);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({ status: 0 });
  }
}

export async function refusal(answer) {
  if (answer.status === 401 && !takeLinked()) forget(token.peek() || me.peek() ? SIGN_IN : " ");
  const text = await answer.text().catch(() => "");
  try {
    return new Problem({ status: answer.status, ...JSON.parse(text) });
  } catch {
    return new Problem({ status: answer.status, title: answer.statusText }); // a proxy's page
  }
}

/** {data, etag} of a document. */
export async function read(path, query, signal) {
  const answer = await request("GET", path, { query, signal });
  return { data: await answer.json(), etag: answer.headers.get("ETag") };
}

/** What a change answers; null for an answer without a body. */
export async function change(method, path, how) {
  const answer = await request(method, path, how);
  const text = await answer.text();
  return text ? JSON.parse(text) : null;
}

/** A body into the folder of downloads: by fetch, as a link could not bring the token along. */
export async function download(path, name) {
  const answer = await request("GET", path);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
