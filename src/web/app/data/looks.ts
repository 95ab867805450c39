// The user's appearance settings: theme and terminal font. The server stores them for the account, and the browser stores them for the
// first paint.
import { signal } from "@preact/signals";
import type { AnswerOf, CallAt } from "#schema/call-types.ts";
import { setTheme, THEMES, type Theme, theme } from "../shell/theme.ts";
import { call } from "./api.ts";

type UserAppearance = AnswerOf<CallAt<"GET", "/users/me/appearance">>;
export type TerminalFont = UserAppearance["terminal_font"];

const FONT_KEY = "terminal-font";

/** Empty means the system default. */
export const terminalFont = signal((localStorage.getItem(FONT_KEY) ?? "") as TerminalFont);

const storeFont = (font: TerminalFont): void => {
  terminalFont.value = font;
  if (font === "") localStorage.removeItem(FONT_KEY);
  else localStorage.setItem(FONT_KEY, font);
};

/** Other clients store more themes, such as ones for color blindness. */
const toTheme = (preference: string): Theme | undefined =>
  preference === "" ? undefined : ((["light", "dark"] as const).find((one) => preference.startsWith(one)) ?? "system");

/** Loads the user's settings. Settings that were never chosen keep this browser's values. */
export const loadUserAppearance = async (): Promise<void> => {
  const { theme_preference, terminal_font } = await call("GET /users/me/appearance");
  const chosen = toTheme(theme_preference);
  if (chosen && chosen !== theme.value) setTheme(chosen);
  storeFont(terminal_font);
};

const save = (): Promise<UserAppearance> =>
  call("PUT /users/me/appearance", {
    body: { theme_preference: theme.value === "system" ? "auto" : theme.value, terminal_font: terminalFont.value },
  });

/** Applies the theme immediately. Throws if the server does not store it. */
export const chooseTheme = async (chosen: Theme): Promise<void> => {
  setTheme(chosen);
  await save();
};

/** Switches to the next of system, light and dark. */
export const switchTheme = (): Promise<void> =>
  chooseTheme(THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? "system");

export const chooseTerminalFont = async (font: TerminalFont): Promise<void> => {
  storeFont(font);
  await save();
};
