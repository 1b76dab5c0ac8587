// Names of queues: any octets. Octets that are not UTF-8 are lone surrogates in JSON ("\udcff" for ff) and `%FF` in addresses,
// which encodeURIComponent and decodeURIComponent do not support.

const ESCAPED = /([\udc80-\udcff])/u; // with `u`, half of a surrogate pair does not match
const HALVES = /\p{Surrogate}/gu;
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const utf8 = new TextEncoder();

/** Encode a name as one segment of a path: 'a/b' → 'a%2Fb', '\udcff' → '%FF'. */
export const encodeName = (name) =>
  name
    .split(ESCAPED)
    .map((part, i) => (i % 2 ? percent(part) : encodeURIComponent(part.replace(HALVES, "\ufffd"))))
    .join("");

const percent = (escaped) => `%${(escaped.charCodeAt(0) & 0xff).toString(16).toUpperCase()}`;

/** Decode a segment of a path; a stray percent sign stays as it is. */
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
    const [character, length] = firstCharacter(octets.subarray(at, at + 4));
    text += character;
    at += length;
  }
  return text;
}

/** Return the first character and its length in octets; an invalid first octet becomes a lone surrogate. */
function firstCharacter(octets) {
  for (let length = 1; length <= octets.length; length++) {
    try {
      return [strict.decode(octets.subarray(0, length)), length];
    } catch {
      // perhaps with one more octet
    }
  }
  return [String.fromCharCode(0xdc00 + octets[0]), 1];
}

/** Return whether a user can type the name as displayed: no control, invisible or ambiguous white space characters. */
export const isTypeable = (name) => name !== "" && !/\p{C}|[^\S ]|^ | $| {2}/u.test(name);

/**
 * Make white space and invisible characters of a name visible: 'a  b' → 'a␣␣b', 'a\u00a0b' → 'a⟨A0⟩b'.
 * Octets that are not UTF-8 stay; browsers draw them as �.
 */
export const visibleName = (name) =>
  name
    .replace(/^ +| +$| {2,}/g, (run) => "␣".repeat(run.length))
    .replace(/[^\S ]|\p{Cc}|\p{Cf}/gu, (each) => `⟨${each.codePointAt(0).toString(16).toUpperCase()}⟩`);
