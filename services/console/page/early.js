// Runs before the modules, which begin when the page has been drawn already: takes the token out of the link that the console
// printed, applies the chosen theme, and opens the event stream (live.js), which is on its way while the modules load.

(() => {
  const chosen = localStorage.getItem("penstock.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();

/** Moves `#token=...` into the session storage, and out of the address and its place in the history. */
function takeToken() {
  const [, token] = /^#token=([^/&?]+)$/.exec(location.hash) ?? [];
  if (!token) return false;
  sessionStorage.setItem("penstock.token", decodeURIComponent(token)); // as session.js keeps it
  history.replaceState(null, "", location.pathname + location.search);
  return true;
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
