// The theme: light, dark or system. ../early.ts applies it before the first paint.
import { signal } from "@preact/signals";

export type Theme = "light" | "dark" | "system";

const stored = localStorage.getItem("theme");
export const theme = signal<Theme>(stored === "light" || stored === "dark" ? stored : "system");

export const setTheme = (newTheme: Theme): void => {
  theme.value = newTheme;
  if (newTheme === "system") {
    localStorage.removeItem("theme");
    delete document.documentElement.dataset.theme;
  } else {
    localStorage.setItem("theme", newTheme);
    document.documentElement.dataset.theme = newTheme;
  }
};

export const THEMES: readonly Theme[] = ["system", "light", "dark"];
