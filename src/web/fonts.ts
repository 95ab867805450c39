// The terminal fonts from their packages: the Latin subset, upright, in two weights. The browser fetches only the font that the user chose.
import { sha256 } from "#base/ids.ts";
import type { WebFile } from "./files.ts";
import { PREFIX } from "./installable.ts";

const FONTS = ["fira-code", "geist-mono", "ibm-plex-mono", "jetbrains-mono", "source-code-pro"] as const;
const WEIGHTS = ["400", "700"] as const;

/** The URL of each weight, by font. */
export type FontAddresses = Readonly<Record<string, Readonly<Record<(typeof WEIGHTS)[number], string>>>>;

export const loadTerminalFonts = async (): Promise<{ addresses: FontAddresses; files: WebFile[] }> => {
  const files: WebFile[] = [];
  const addFont = async (font: string, weight: string): Promise<string> => {
    const path = `@fontsource/${font}/files/${font}-latin-${weight}-normal.woff2`;
    const body = await Bun.file(Bun.resolveSync(path, import.meta.dirname)).bytes();
    const name = `${font}-${weight}-${sha256(body).slice(0, 10)}.woff2`;
    files.push({ name, type: "font/woff2", body });
    return PREFIX + name;
  };
  const addresses: Record<string, Record<(typeof WEIGHTS)[number], string>> = {};
  for (const font of FONTS) addresses[font] = { 400: await addFont(font, "400"), 700: await addFont(font, "700") };
  return { addresses, files };
};
