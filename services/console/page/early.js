// Runs before the modules, which start only after the first paint: takes the token out of the link that the console printed,
// applies the chosen theme, and opens the event stream (live.js) while the modules load.

(() => {
  const chosen = localStorage.getItem("penstock.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();

/** Move the token of `#token=...` out of the address and the history into session storage.
 *
 * A tab that has a token keeps it; the link's is stored beside it, for session.js to use if the first is rejected.
 */
function takeToken() {
  const [, written] = /^#token=([^/&?]+)$/.exec(location.hash) ?? [];
  if (!written) return false;
  history.replaceState(null, "", location.pathname + location.search);
  const token = decoded(written);
  const kept = sessionStorage.getItem("penstock.token"); // the keys are those of session.js
  if (token && token !== kept) sessionStorage.setItem(kept ? "penstock.linked" : "penstock.token", token);
  return true;
}

/** Decode a token; '' for a broken escape or a character that is not allowed in a header. */
function decoded(written) {
  try {
    const token = decodeURIComponent(written);
    return /^[\x21-\x7e]+$/.test(token) ? token : "";
  } catch {
    return "";
  }
}

takeToken();
// a link opened in a tab that shows the page already changes only the hash, which loads nothing
addEventListener("hashchange", () => takeToken() && location.reload());

{
  const controller = new AbortController();
  const token = sessionStorage.getItem("penstock.token");
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = fetch("api/v1/events", { headers, cache: "no-store", signal: controller.signal });
  answer.catch(() => {}); // live.js handles it
  globalThis.early = { controller, answer };
}
