// Terminal fonts, downloaded when the user has chosen one.
import type { TerminalFont } from "../../data/looks.ts";

declare const SLIPWAY_FONTS: Readonly<Record<string, Readonly<Record<string, string>>>>;

const loaded = new Map<string, Promise<unknown>>();

const load = (font: string): Promise<unknown> =>
  Promise.all(
    Object.entries(SLIPWAY_FONTS[font] ?? {}).map(async ([weight, address]) => {
      document.fonts.add(await new FontFace(font, `url(${address})`, { weight }).load());
    }),
  );

/** Loads the font and returns its family; `usual` if none was chosen. Throws if it cannot be loaded. */
export const loadFont = async (font: TerminalFont, usual: string): Promise<string> => {
  if (font === "") return usual;
  let known = loaded.get(font);
  if (!known) {
    known = load(font).catch((error) => {
      loaded.delete(font);
      throw error;
    });
    loaded.set(font, known);
  }
  await known;
  return `${font}, ${usual}`;
};
