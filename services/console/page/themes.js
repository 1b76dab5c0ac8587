// Light, dark, or as the system has it; plots draw on canvas, so they ask for colours.

import { effect, signal } from "./html.js";

const KEY = "penstock.theme";
export const THEMES = ["system", "light", "dark"];
const system = matchMedia("(prefers-color-scheme: dark)");

export const theme = signal(localStorage.getItem(KEY) ?? "system");
/** Counts changes of what is to be seen: whoever draws by himself draws anew. */
export const drawn = signal(0);

effect(() => {
  const root = document.documentElement;
  if (theme.value === "system") {
    delete root.dataset.theme;
    localStorage.removeItem(KEY);
  } else {
    root.dataset.theme = theme.value;
    localStorage.setItem(KEY, theme.value);
  }
  drawn.value = drawn.peek() + 1;
});
system.addEventListener("change", () => (drawn.value += 1));

export const isDark = () => (theme.peek() === "system" ? system.matches : theme.peek() === "dark");

/** The colour that a name of the style sheet (`--in`) has now. */
export function colour(name) {
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
