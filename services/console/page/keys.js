// Keyboard shortcuts. Single keys work outside input fields; `g` and a letter open a view.

import { signal } from "./html.js";
import { go } from "./routes.js";

const SEQUENCE_MS = 1500; // at most between `g` and the letter

export const SHORTCUTS = [
  ["o", "overview", "Overview"],
  ["q", "queues", "Queues"],
  ["d", "dead", "Dead letters"],
  ["j", "jobs", "Jobs"],
  ["e", "edges", "Edges"],
  ["c", "connections", "Connections"],
  ["r", "ring", "Ring"],
  ["p", "peers", "Peers"],
  ["s", "subscriptions", "Subscriptions"],
  ["v", "reservations", "Reservations"],
  ["t", "report", "Report"],
  ["a", "audit", "Audit log"],
];

export const helpIsOpen = signal(false);
let pressedG = -Infinity; // event.timeStamp, in ms: near 0 right after the page has loaded

const isTyping = (target) => target.closest?.("input, textarea, select, [contenteditable]");

function focusFilter() {
  const field = document.querySelector("main [data-filter]");
  field?.focus();
  field?.select?.();
  return Boolean(field);
}

function onKeyDown(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (isTyping(event.target)) {
    if (event.target.matches("[data-filter]") && leaveFilter(event)) event.preventDefault();
    return;
  }
  if (document.querySelector("dialog[open]")) return;
  if (runShortcut(event)) event.preventDefault();
}

/** ↓ moves the focus from the filter to the first row, Escape only leaves the field. */
function leaveFilter({ key, target }) {
  if (key === "Escape") target.blur();
  const row = document.querySelector("main table.rows tbody tr:not(.spacer)");
  const place = key === "ArrowDown" && (row?.querySelector("a") ?? row?.querySelector("button, input"));
  if (place) place.focus();
  return Boolean(place);
}

/** Return whether this key completes a `g` sequence; other handlers then ignore it. */
export const completesSequence = ({ key, timeStamp }) =>
  timeStamp - pressedG < SEQUENCE_MS && SHORTCUTS.some(([letter]) => letter === key);

function runShortcut(event) {
  const { key, timeStamp } = event;
  if (completesSequence(event)) {
    pressedG = -Infinity;
    go([SHORTCUTS.find(([letter]) => letter === key)[1]]);
    return true;
  }
  pressedG = key === "g" ? timeStamp : -Infinity;
  if (key === "?") return (helpIsOpen.value = true);
  return key === "/" && focusFilter();
}

export const listen = () => addEventListener("keydown", onKeyDown);
