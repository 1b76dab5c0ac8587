// Send requests to the console's HTTP API. Refusals are thrown as Problem, with advice on what to do.

import { encodeName } from "./names.js";
import { forget, me, switchToLinkedToken, token } from "./session.js";

const ROOT = "api/v1/"; // relative, so that it also works below a path of a proxy
const INVALID_TOKEN = "The console rejected this token. It may have been revoked or mistyped.";

/** Advice by HTTP status. A problem document that has its own advice takes precedence. */
const ADVICE = {
  0: "The console does not answer. It may be restarting; the page reconnects automatically.",
  400: "Correct the input and try again.",
  403: "Your role does not allow this. Ask the console's administrator for a token with a higher role.",
  404: "It may have been deleted.",
  409: "Check the current state and decide again.",
  412: "Another user changed it, so nothing was done. Check the current state, then try again.",
  413: "The request is too large.",
  422: "Correct the fields above and try again.",
  429: "Wait a moment and try again.",
  500: "This is an internal error of the console. Search its log for the request ID below.",
  502: "The console, or a proxy in front of it, is failing. Try again in a moment.",
  503: "The store does not answer the console. Nothing was done; try again in a moment.",
  504: "The request timed out. It may have taken effect: check the current state before you try again.",
  507: "The store is out of memory. Consume messages, or give it more memory.",
};

/** Advice by the problem's label, where the status alone says too little. */
const ADVICE_BY_LABEL = {
  queue_full: "Consume messages from the queue, or raise its limits.",
};

/** A refused or failed request. */
export class Problem extends Error {
  /** body: a problem+json document, or the same fields set by this page. */
  constructor(body) {
    super(body.detail || body.title || "Something went wrong");
    this.status = body.status ?? 0;
    this.title = body.title || (this.status ? `Refused (${this.status})` : "No connection");
    this.detail = body.detail ?? "";
    this.label = body.label ?? "";
    this.instance = this.status >= 500 ? (body.instance ?? "") : "";
    this.errors = body.errors ?? []; // [{at, message}]
    this.advice = body.advice ?? ADVICE_BY_LABEL[this.label] ?? ADVICE[this.status] ?? "";
  }
}

/** Build a path below the API: at`queues/${name}/dead`, with each value percent-encoded. */
export const at = (texts, ...values) => String.raw({ raw: texts }, ...values.map(encodeName));

/** Add the Authorization header, if this tab has a token. */
export function headers(more = {}) {
  return token.peek() ? { ...more, Authorization: `Bearer ${token.peek()}` } : more;
}

function address(path, query = {}) {
  const pairs = Object.entries(query).flatMap(([name, value]) => [value].flat().map((each) => [name, each]));
  const text = new URLSearchParams(pairs.filter(([, value]) => value !== "" && value != null)).toString();
  return ROOT + path + (text && "?") + text;
}

/** Send a request and return the response. Throws Problem, or AbortError when `signal` aborts it. */
export async function request(method, path, { query, body, etag, create, signal } = {}) {
  refuseDotNames(path);
  const sent = { Accept: "application/json" };
  if (body !== undefined) sent["Content-Type"] = "application/json";
  if (etag) sent["If-Match"] = etag;
  if (create) sent["If-None-Match"] = "*";
  const response = await fetchOrProblem(address(path, query), {
    method,
    headers: headers(sent),
    body: body === undefined ? undefined : JSON.stringify(body),
    cache: "no-store",
    signal,
  });
  if (!response.ok) throw await problemOf(response);
  return response;
}

/** Browsers resolve `.` and `..` in a path, even percent-encoded, so the request would go to another resource. */
function refuseDotNames(path) {
  if (!path.split("/").some((part) => part === "." || part === "..")) return;
  throw new Problem({
    status: 400,
    title: "Browsers cannot request this name",
    detail: "it would be resolved as a relative path",
    advice: "Use the command line instead.",
  });
}

async function fetchOrProblem(url, options) {
  try {
    return await fetch(url, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({ status: 0 });
  }
}

/** Turn an error response into a Problem; after a 401 the user has to sign in again. */
export async function problemOf(response) {
  if (response.status === 401 && !switchToLinkedToken()) forget(token.peek() || me.peek() ? INVALID_TOKEN : " ");
  const text = await response.text().catch(() => "");
  try {
    return new Problem({ status: response.status, ...JSON.parse(text) });
  } catch {
    return new Problem({ status: response.status, title: response.statusText }); // a proxy's error page
  }
}

/** Read a document: {data, etag}. */
export async function read(path, query, signal) {
  const response = await request("GET", path, { query, signal });
  return { data: await response.json(), etag: response.headers.get("ETag") };
}

/** Send a change and return the response's JSON, or null for an empty response. */
export async function change(method, path, options) {
  const response = await request(method, path, options);
  const text = await response.text();
  return text ? JSON.parse(text) : null;
}

/** Save a body as a file. A plain link could not send the token. */
export async function download(path, name) {
  const response = await request("GET", path);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
