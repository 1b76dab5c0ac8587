// What does not wait for the modules, which run when the page has been drawn already: the choice of light or dark that was
// made here last, and the stream of what goes on (live.js), which is on its way while they are.

(() => {
  const chosen = localStorage.getItem("penstock.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();

{
  const controller = new AbortController();
  // as session.js keeps it, and api.js sends it
  const token = sessionStorage.getItem("penstock.token");
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = fetch("api/v1/events", { headers, cache: "no-store", signal: controller.signal });
  answer.catch(() => {}); // whoever takes it over hears of that
  globalThis.early = { controller, answer };
}
