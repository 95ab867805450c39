// The theme: light, dark or system. ../early.ts applies it before the first paint.
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

export const THEMES: readonly Theme[] = ["system", "light", "dark"];
