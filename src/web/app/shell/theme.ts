// Light, dark, or as the system has it. app.html sets it before the first paint.
import { signal } from "@preact/signals";

export type Theme = "light" | "dark" | "system";

const stored = localStorage.getItem("theme");
export const theme = signal<Theme>(stored === "light" || stored === "dark" ? stored : "system");

export const setTheme = (wanted: Theme): void => {
  theme.value = wanted;
  if (wanted === "system") {
    localStorage.removeItem("theme");
    delete document.documentElement.dataset.theme;
  } else {
    localStorage.setItem("theme", wanted);
    document.documentElement.dataset.theme = wanted;
  }
};

const ORDER: readonly Theme[] = ["system", "light", "dark"];

/** The next of system, light, dark. */
export const nextTheme = (): void => setTheme(ORDER[(ORDER.indexOf(theme.value) + 1) % ORDER.length] ?? "system");
