// What every part of the page stands on: elements out of template strings, hooks and signals, from one place.
//
// Text in a template becomes a text node, never markup: nothing in this page makes HTML of a string. Names, bodies and
// errors come from anybody.

import { Fragment, h, render } from "./vendor/preact.js";
import htm from "./vendor/htm.js";
import { seen } from "./names.js";

const TURNING = /[\u202a-\u202e\u2066-\u2069]/g;

/** Text that would turn around what is read behind it says so instead: 'txt.exe' is not to look like 'exe.txt'. */
export const unturned = (text) =>
  text.replace(TURNING, (one) => `⟨${one.charCodeAt(0).toString(16).toUpperCase()}⟩`);

const safe = (child) =>
  typeof child === "string" ? unturned(child) : Array.isArray(child) ? child.map(safe) : child;

/** The text of a link is a name of anybody's, and leads to what has it: names that differ are to look different. */
const linked = (type, children) =>
  type === "a" && children.length === 1 && typeof children[0] === "string" ? [seen(children[0])] : children;

export const html = htm.bind((type, props, ...children) => h(type, props, ...linked(type, children).map(safe)));
export { Fragment, render };
export { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/preact-hooks.js";
export { batch, computed, effect, signal, untracked } from "./vendor/signals.js";

/** Class names of those that hold: names({row: true, zero: n === 0}). */
export const names = (given) =>
  Object.keys(given)
    .filter((name) => given[name])
    .join(" ") || undefined;
