// Runs before the modules, which begin when the page has been drawn already: takes the token out of the link that the console
// printed, applies the chosen theme, and opens the event stream (live.js), which is on its way while the modules load.

(() => {
  const chosen = localStorage.getItem("penstock.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();

/** Moves the token of `#token=...` out of the address and its place in the history, into the session storage.
 *
 * It replaces no token: beside one that this tab has it waits as the link's, which session.js takes if that one is refused.
 */
function takeToken() {
  const [, written] = /^#token=([^/&?]+)$/.exec(location.hash) ?? [];
  if (!written) return false;
  history.replaceState(null, "", location.pathname + location.search);
  const token = decoded(written);
  const kept = sessionStorage.getItem("penstock.token"); // as session.js keeps them
  if (token && token !== kept) sessionStorage.setItem(kept ? "penstock.linked" : "penstock.token", token);
  return true;
}

/** '' for what cannot be a token: a broken escape, or a character that no header may have. */
function decoded(written) {
  try {
    const token = decodeURIComponent(written);
    return /^[\x21-\x7e]+$/.test(token) ? token : "";
  } catch {
    return "";
  }
}

takeToken();
// the link was opened in a tab that has the page already: no browser loads it again for that
addEventListener("hashchange", () => takeToken() && location.reload());

{
  const controller = new AbortController();
  // as session.js keeps it, and api.js sends it
  const token = sessionStorage.getItem("penstock.token");
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = fetch("api/v1/events", { headers, cache: "no-store", signal: controller.signal });
  answer.catch(() => {}); // whoever takes it over hears of that
  globalThis.early = { controller, answer };
}
