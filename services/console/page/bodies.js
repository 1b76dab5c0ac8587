// Bodies of messages: octets that anybody may have sent. They are looked at as text, JSON or hex, and become text
// nodes and nothing else.

import { unturned } from "./html.js";

const SHOWN = 64 * 1024; // octets; a browser takes long over more, and there is a download
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const lenient = new TextDecoder("utf-8", { ignoreBOM: true });

export function decode(base64) {
  const letters = atob(base64 ?? "");
  const octets = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) octets[i] = letters.charCodeAt(i);
  return octets;
}

export function encode(octets) {
  let text = "";
  for (let i = 0; i < octets.length; i += 0x8000)
    text += String.fromCharCode(...octets.subarray(i, i + 0x8000));
  return btoa(text);
}

export const shown = (octets) => octets.subarray(0, SHOWN);

/** The text, or null if it is not UTF-8; a character that the end cuts through is left out. */
export function utf8(octets, isCut = false) {
  for (let short = 0; short <= (isCut ? 3 : 0); short++) {
    try {
      return strict.decode(octets.subarray(0, octets.length - short));
    } catch {
      // perhaps only the last character
    }
  }
  return null;
}

/** 'json', 'text' or 'hex': how it is best looked at. */
export function kind(octets, isCut) {
  const text = utf8(octets, isCut);
  if (text === null || isBinary(text)) return "hex";
  return !isCut && isJson(text) ? "json" : "text";
}

const isBinary = (text) => /[\0-\x08\x0e-\x1a\x1c-\x1f]/.test(text);

export function isJson(text) {
  if (!/^\s*[[{"]/.test(text)) return false; // a bare number is text to a person
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Text with its control characters to be seen: ␀ ␛ ⟨202E⟩; lines and tabs stay what they are. */
export const visible = (octets) =>
  unturned(lenient.decode(octets)).replace(/[\0-\x08\x0b-\x1f\x7f]/g, (one) =>
    one === "\x7f" ? "␡" : String.fromCharCode(0x2400 + one.charCodeAt(0)),
  );

/** One line for tables: the beginning, without line ends. */
export function preview(octets, length = 120) {
  const isText = kind(octets, true) === "text";
  if (!isText) return [...octets.subarray(0, 24)].map((one) => one.toString(16).padStart(2, "0")).join(" ");
  return visible(octets.subarray(0, length * 4))
    .replace(/\s+/g, " ")
    .slice(0, length);
}

/** Rows of 16: [['00000000', '68 65 …', 'he…']]. */
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
 * JSON laid out over lines, as [[kind, text]]: kinds are key, string, other and plain. Numbers and strings stay letter
 * for letter what they were (a parser would round 12345678901234567890), and so do members that come twice.
 */
export function layOut(json) {
  const tokens = json.match(TOKENS) ?? [];
  const out = [];
  let depth = 0;
  const line = () => out.push(["plain", `\n${"  ".repeat(depth)}`]);
  tokens.forEach((token, i) => {
    if (isEnd(token)) {
      depth -= 1;
      if (!isBegin(tokens[i - 1])) line();
    }
    out.push([tokenKind(token, tokens[i + 1]), token === ":" ? ": " : token]);
    if (isBegin(token)) {
      depth += 1;
      if (!isEnd(tokens[i + 1])) line();
    }
    if (token === ",") line();
  });
  return out;
}

const isBegin = (token) => token === "{" || token === "[";
const isEnd = (token) => token === "}" || token === "]";

function tokenKind(token, next) {
  if (token[0] === '"') return next === ":" ? "key" : "string";
  return /^[{}[\],:]$/.test(token) ? "plain" : "other";
}
