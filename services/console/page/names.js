// Names of queues: any octets. Those that are no UTF-8 stand in JSON as lone surrogates, "\udcff" for ff, and in
// addresses as `%FF`, which encodeURIComponent and decodeURIComponent know nothing of.

const ESCAPED = /([\udc80-\udcff])/u; // with `u`, half of a pair is none
const HALVES = /\p{Surrogate}/gu;
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const utf8 = new TextEncoder();

/** A name as a part of an address: 'a/b' → 'a%2Fb', '\udcff' → '%FF'. */
export const encodeName = (name) =>
  name
    .split(ESCAPED)
    .map((part, i) => (i % 2 ? percent(part) : encodeURIComponent(part.replace(HALVES, "\ufffd"))))
    .join("");

const percent = (escaped) => `%${(escaped.charCodeAt(0) & 0xff).toString(16).toUpperCase()}`;

/** The other way round; a percent sign that somebody typed stays one. */
export function decodeName(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return decoded(octetsOf(part));
  }
}

const octetsOf = (part) =>
  Uint8Array.from(
    part
      .split(/(%[0-9a-f]{2})/i)
      .flatMap((each, i) => (i % 2 ? [parseInt(each.slice(1), 16)] : [...utf8.encode(each)])),
  );

function decoded(octets) {
  let text = "";
  for (let at = 0; at < octets.length; ) {
    const [one, length] = character(octets.subarray(at, at + 4));
    text += one;
    at += length;
  }
  return text;
}

/** The first character, and of how many octets it is; an octet that begins none is escaped. */
function character(octets) {
  for (let length = 1; length <= octets.length; length++) {
    try {
      return [strict.decode(octets.subarray(0, length)), length];
    } catch {
      // perhaps with one more
    }
  }
  return [String.fromCharCode(0xdc00 + octets[0]), 1];
}

/** Whether somebody can type it as it is seen: no control characters, none that turn the direction of what follows. */
export const isTypable = (name) => name !== "" && !/\p{C}|[^\S ]|^ | $| {2}/u.test(name);

/**
 * A name with the white space that browsers leave out or draw alike, and what they draw not at all: 'a  b' → 'a␣␣b',
 * 'a\u00a0b' → 'a⟨A0⟩b'. Octets that are no UTF-8 stay, as browsers draw them.
 */
export const seen = (name) =>
  name
    .replace(/^ +| +$| {2,}/g, (run) => "␣".repeat(run.length))
    .replace(/[^\S ]|\p{Cc}|\p{Cf}/gu, (one) => `⟨${one.codePointAt(0).toString(16).toUpperCase()}⟩`);
