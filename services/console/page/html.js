// What every part of the page stands on: elements out of template strings, hooks and signals, from one place.
//
// Text in a template becomes a text node, never markup: nothing in this page makes HTML of a string.

import { Fragment, h, render } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export const html = htm.bind(h);
export { Fragment, render };
export { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/preact-hooks.js";
export { batch, computed, effect, signal, untracked } from "./vendor/signals.js";

/** Class names of those that hold: names({row: true, zero: n === 0}). */
export const names = (given) =>
  Object.keys(given)
    .filter((name) => given[name])
    .join(" ") || undefined;
