// Who we are: a token, if one is needed, is kept for as long as this tab is open, and nowhere else.

import { computed, signal } from "./html.js";

const KEY = "penstock.token";
const LINKED = "penstock.linked"; // the token of a link that was opened beside another token (early.js)
const REPLACED = "penstock.replaced"; // the link's token is used, as the other one was refused
const RANKS = ["view", "operate", "admin"];
/** Views that not every role may see. */
export const NEEDS = { audit: "admin", config: "admin" };

export const token = signal(sessionStorage.getItem(KEY) ?? "");
/** {who, role, auth: token|proxy}; null as long as nobody knows. */
export const me = signal(null);
/** Why a token is asked for: '' as long as none is. */
export const refused = signal("");

export const role = computed(() => me.value?.role ?? "");

/** Whether we may do what needs this role. The console checks it again; this is so that no button promises too much. */
export const may = (needed) => RANKS.indexOf(role.value) >= RANKS.indexOf(needed);

export function keep(given) {
  sessionStorage.setItem(KEY, given);
  token.value = given;
}

let isLeaving = false;

/** Uses the token of a link in place of the one that was refused, by loading the page anew; false if there is none. */
export function takeLinked() {
  if (isLeaving) return true; // other requests with the old token may be answered meanwhile
  const linked = sessionStorage.getItem(LINKED);
  if (!linked) return false;
  isLeaving = true;
  sessionStorage.removeItem(LINKED);
  sessionStorage.setItem(REPLACED, "yes");
  sessionStorage.setItem(KEY, linked);
  location.reload();
  return true;
}

/** Which of two tokens is used, once and only after a link brought the second one: "replaced", "kept" or "". */
export function usedToken() {
  const used = sessionStorage.getItem(REPLACED) ? "replaced" : sessionStorage.getItem(LINKED) ? "kept" : "";
  sessionStorage.removeItem(REPLACED);
  sessionStorage.removeItem(LINKED);
  return used;
}

export function forget(why = "") {
  usedToken();
  sessionStorage.removeItem(KEY);
  token.value = "";
  me.value = null;
  refused.value = why;
}
