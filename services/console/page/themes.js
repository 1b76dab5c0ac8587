// The theme: light, dark, or the system's. Plots draw on a canvas, so they read colours from here.

import { effect, signal } from "./html.js";

const KEY = "penstock.theme";
export const THEMES = ["system", "light", "dark"];
const system = matchMedia("(prefers-color-scheme: dark)");

export const theme = signal(localStorage.getItem(KEY) ?? "system");
/** Counts changes of colours, so that canvases redraw. */
export const colourVersion = signal(0);

effect(() => {
  const root = document.documentElement;
  if (theme.value === "system") {
    delete root.dataset.theme;
    localStorage.removeItem(KEY);
  } else {
    root.dataset.theme = theme.value;
    localStorage.setItem(KEY, theme.value);
  }
  colourVersion.value = colourVersion.peek() + 1;
});
system.addEventListener("change", () => (colourVersion.value += 1));

/** Return the current value of a colour of the style sheet (`--in`). */
export function colour(name) {
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
