// Format bodies of messages, which are untrusted octets, as text, JSON or hex. They become text nodes only.

import { escapeBidi } from "./html.js";

const MAX_SHOWN = 64 * 1024; // octets; more is slow to draw, and can be downloaded
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const lenient = new TextDecoder("utf-8", { ignoreBOM: true });

/** Decode base64 to octets. */
export function decode(base64) {
  const letters = atob(base64 ?? "");
  const octets = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) octets[i] = letters.charCodeAt(i);
  return octets;
}

/** Encode octets as base64. */
export function encode(octets) {
  let text = "";
  for (let i = 0; i < octets.length; i += 0x8000)
    text += String.fromCharCode(...octets.subarray(i, i + 0x8000));
  return btoa(text);
}

/** Return the octets that the page shows. */
export const shown = (octets) => octets.subarray(0, MAX_SHOWN);

/** Decode UTF-8; null if it is invalid. isCut: leave out an incomplete last character. */
export function utf8(octets, isCut = false) {
  for (let short = 0; short <= (isCut ? 3 : 0); short++) {
    try {
      return strict.decode(octets.subarray(0, octets.length - short));
    } catch {
      // perhaps only the last character is incomplete
    }
  }
  return null;
}

/** Return the best way to show a body: 'json', 'text' or 'hex'. */
export function kind(octets, isCut) {
  const text = utf8(octets, isCut);
  if (text === null || isBinary(text)) return "hex";
  return !isCut && isJson(text) ? "json" : "text";
}

const isBinary = (text) => /[\0-\x08\x0e-\x1a\x1c-\x1f]/.test(text);

export function isJson(text) {
  if (!/^\s*[[{"]/.test(text)) return false; // a bare number reads better as text
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Decode text and make control characters visible: ␀ ␛ ⟨202E⟩; line ends and tabs stay. */
export const visible = (octets) =>
  escapeBidi(lenient.decode(octets)).replace(/[\0-\x08\x0b-\x1f\x7f]/g, (one) =>
    one === "\x7f" ? "␡" : String.fromCharCode(0x2400 + one.charCodeAt(0)),
  );

/** Return the beginning as one line, for tables. */
export function preview(octets, length = 120) {
  const isText = kind(octets, true) === "text";
  if (!isText) return [...octets.subarray(0, 24)].map((one) => one.toString(16).padStart(2, "0")).join(" ");
  return visible(octets.subarray(0, length * 4))
    .replace(/\s+/g, " ")
    .slice(0, length);
}

/** Return a hex dump: `[['00000000', '68 65 …', 'he…']]`. */
export function hexRows(octets, width = 16) {
  const rows = [];
  for (let from = 0; from < octets.length; from += width) {
    const row = octets.subarray(from, from + width);
    const hex = [...row].map((one, i) => one.toString(16).padStart(2, "0") + (i === 7 ? " " : ""));
    const text = [...row].map((one) => (one >= 32 && one < 127 ? String.fromCharCode(one) : "·"));
    rows.push([from.toString(16).padStart(8, "0"), hex.join(" ").padEnd(width * 3), text.join("")]);
  }
  return rows;
}

const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/**
 * Indent JSON and return [[kind, text]], of kinds key, string, other and plain. Numbers, strings and duplicate members stay exactly as
 * they were; a parser would round 12345678901234567890.
 */
export function indentJson(json) {
  const tokens = json.match(TOKENS) ?? [];
  const out = [];
  let depth = 0;
  const newLine = () => out.push(["plain", `\n${"  ".repeat(depth)}`]);
  tokens.forEach((token, i) => {
    if (isEnd(token)) {
      depth -= 1;
      if (!isBegin(tokens[i - 1])) newLine();
    }
    out.push([tokenKind(token, tokens[i + 1]), token === ":" ? ": " : token]);
    if (isBegin(token)) {
      depth += 1;
      if (!isEnd(tokens[i + 1])) newLine();
    }
    if (token === ",") newLine();
  });
  return out;
}

const isBegin = (token) => token === "{" || token === "[";
const isEnd = (token) => token === "}" || token === "]";

function tokenKind(token, next) {
  if (token[0] === '"') return next === ":" ? "key" : "string";
  return /^[{}[\],:]$/.test(token) ? "plain" : "other";
}
