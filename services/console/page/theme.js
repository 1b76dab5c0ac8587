// Before anything is drawn: the choice of light or dark that was made here last. A script of its own and no module,
// as modules run when the page has been drawn already.
(() => {
  const chosen = localStorage.getItem("penstock.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
