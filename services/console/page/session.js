// The signed-in user. A token is kept in this tab's session storage only, until the tab is closed.

import { computed, signal } from "./html.js";

const KEY = "penstock.token";
const LINKED = "penstock.linked"; // token of a link opened in a tab that has another one (early.js)
const REPLACED = "penstock.replaced"; // set when the link's token replaced a rejected one
const RANKS = ["view", "operate", "admin"];
/** Roles that views require, where `view` is not enough. */
export const REQUIRED_ROLE = { audit: "admin", config: "admin" };

export const token = signal(sessionStorage.getItem(KEY) ?? "");
/** {who, role, auth: token|proxy}; null until known. */
export const me = signal(null);
/** Why the user has to sign in; '' if not. */
export const refused = signal("");

export const role = computed(() => me.value?.role ?? "");

/** Return whether the user has this role or a higher one. The console enforces it; the page only hides buttons. */
export const may = (needed) => RANKS.indexOf(role.value) >= RANKS.indexOf(needed);

export function keep(given) {
  sessionStorage.setItem(KEY, given);
  token.value = given;
}

let isReloading = false;

/** Replace a rejected token by that of a link and reload the page; return false if there is none. */
export function switchToLinkedToken() {
  if (isReloading) return true; // further responses to the old token
  const linked = sessionStorage.getItem(LINKED);
  if (!linked) return false;
  isReloading = true;
  sessionStorage.removeItem(LINKED);
  sessionStorage.setItem(REPLACED, "yes");
  sessionStorage.setItem(KEY, linked);
  location.reload();
  return true;
}

/** Return once, after a link brought a second token, which one is in use: "replaced" or "kept"; else "". */
export function takeTokenNotice() {
  const notice = sessionStorage.getItem(REPLACED) ? "replaced" : sessionStorage.getItem(LINKED) ? "kept" : "";
  sessionStorage.removeItem(REPLACED);
  sessionStorage.removeItem(LINKED);
  return notice;
}

/** Sign out; why: shown above the sign-in form. */
export function forget(why = "") {
  takeTokenNotice();
  sessionStorage.removeItem(KEY);
  token.value = "";
  me.value = null;
  refused.value = why;
}
