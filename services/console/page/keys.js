// The keyboard. Single keys work while nobody types; `g` and a letter go to a page.

import { signal } from "./html.js";
import { go } from "./routes.js";

const PATIENCE_MS = 1500; // between `g` and the letter

export const PLACES = [
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
  ["a", "audit", "Audit"],
];

export const helpIsOpen = signal(false);
let pressedG = -Infinity; // ms, as events have it: those of the first second are near 0

const isTyping = (target) => target.closest?.("input, textarea, select, [contenteditable]");

function focusFilter() {
  const field = document.querySelector("main [data-filter]");
  field?.focus();
  field?.select?.();
  return Boolean(field);
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (isTyping(event.target)) {
    if (event.target.matches("[data-filter]") && left(event)) event.preventDefault();
    return;
  }
  if (document.querySelector("dialog[open]")) return;
  if (acted(event)) event.preventDefault();
}

/** Out of the filter: to what it lets through, past all that stands between. */
function left({ key, target }) {
  if (key === "Escape") target.blur();
  const row = document.querySelector("main table.rows tbody tr:not(.spacer)");
  const place = key === "ArrowDown" && (row?.querySelector("a") ?? row?.querySelector("button, input"));
  if (place) place.focus();
  return Boolean(place);
}

/** Whether this is the letter behind a `g`, which whoever has keys of his own is to leave alone. */
export const leads = ({ key, timeStamp }) =>
  timeStamp - pressedG < PATIENCE_MS && PLACES.some(([letter]) => letter === key);

function acted(event) {
  const { key, timeStamp } = event;
  const place = PLACES.find(([letter]) => letter === key);
  if (leads(event)) {
    pressedG = -Infinity;
    go([place[1]]);
    return true;
  }
  pressedG = key === "g" ? timeStamp : -Infinity;
  if (key === "?") return (helpIsOpen.value = true);
  return key === "/" && focusFilter();
}

export const listen = () => addEventListener("keydown", pressed);
