// The logos that the app can show, as one file of SVG symbols. Loaded with the first logo; they take the color of the surrounding text.
import { sha256 } from "#base/ids.ts";
import { LOGOS } from "./app/logos.ts";
import type { WebFile } from "./files.ts";
import { encode, PREFIX } from "./installable.ts";

export const buildLogos = async (): Promise<{ address: string; file: WebFile }> => {
  const symbols = await Promise.all(
    [...new Set(Object.values(LOGOS))].map(async (name) => {
      const path = Bun.resolveSync(`simple-icons/icons/${name}.svg`, import.meta.dirname);
      const [, shape] = /<path d="([^"]+)"\/>/.exec(await Bun.file(path).text()) ?? [];
      if (!shape) throw new Error(`the logo ${name} is not one path`);
      return `<symbol id="${name}" viewBox="0 0 24 24"><path d="${shape}" fill="currentColor" stroke="none"/></symbol>`;
    }),
  );
  const body = encode(`<svg xmlns="http://www.w3.org/2000/svg">${symbols.join("")}</svg>`);
  const name = `logos-${sha256(body).slice(0, 10)}.svg`;
  return { address: PREFIX + name, file: { name, type: "image/svg+xml", body } };
};
