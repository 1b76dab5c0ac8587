// Elements from template strings, hooks and signals: the base of every view and component.
//
// Text in a template becomes a text node, never markup. No string becomes HTML: names, bodies and errors are untrusted.

import { Fragment, h, render } from "./vendor/preact.js";
import htm from "./vendor/htm.js";
import { visibleName } from "./names.js";

const BIDI_CONTROLS = /[\u202a-\u202e\u2066-\u2069]/g;

/** Show characters that change the text direction as their code, so that 'exe.txt' cannot be displayed as 'txt.exe'. */
export const escapeBidi = (text) =>
  text.replace(BIDI_CONTROLS, (each) => `⟨${each.charCodeAt(0).toString(16).toUpperCase()}⟩`);

const safe = (child) =>
  typeof child === "string" ? escapeBidi(child) : Array.isArray(child) ? child.map(safe) : child;

/** The text of a link is an untrusted name: names that differ have to look different. */
const linked = (type, children) =>
  type === "a" && children.length === 1 && typeof children[0] === "string" ? [visibleName(children[0])] : children;

export const html = htm.bind((type, props, ...children) => h(type, props, ...linked(type, children).map(safe)));
export { Fragment, render };
export { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/preact-hooks.js";
export { batch, computed, effect, signal } from "./vendor/signals.js";

/** Return the class names whose value is true: names({row: true, zero: n === 0}). */
export const names = (given) =>
  Object.keys(given)
    .filter((name) => given[name])
    .join(" ") || undefined;
