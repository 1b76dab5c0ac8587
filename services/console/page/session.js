// Who we are: a token, if one is needed, is kept for as long as this tab is open, and nowhere else.

import { computed, signal } from "./html.js";

const KEY = "penstock.token";
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

export function forget(why = "") {
  sessionStorage.removeItem(KEY);
  token.value = "";
  me.value = null;
  refused.value = why;
}
