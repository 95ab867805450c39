// Writes the deployment's name and logo into the files that the browser loads first: page titles, the manifest of the installed app, and
// the logo URL, so that they don't change after the first paint.
import { type ServedFile, type WebFile, withTwins } from "./files.ts";

export type Face = {
  readonly name: string;
  /** The URL of the logo; empty for the default. */
  readonly logo: string;
};

/** The name in the built files, which the deployment's name replaces. */
const NAME = "Slipway";
const MAX_CACHED = 30;

const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`).replaceAll("$", "&#36;");

const applyToPage = (html: string, { name, logo }: Face): string =>
  html
    .replaceAll(/Slipway(?=<\/(?:title|h1|a)>)/g, escapeHtml(name))
    .replace(`name="application-name" content="${NAME}"`, `name="application-name" content="${escapeHtml(name)}"`)
    .replace('name="application-logo" content=""', `name="application-logo" content="${escapeHtml(logo)}"`);

const applyToManifest = (json: string, { name }: Face): string =>
  JSON.stringify({ ...(JSON.parse(json) as object), name, short_name: name });

/** Returns the origin of the logo if it is on another server. */
const parseOrigin = (logo: string): string | undefined => (/^https?:/.test(logo) ? new URL(logo).origin : undefined);

/**
 * Returns a function that applies the deployment's name and logo to pages and the manifest; `read` returns them. Results are cached until
 * they change.
 */
export const applyBranding = (read: () => Promise<Face>): ((file: ServedFile) => Promise<ServedFile>) => {
  const cache = new Map<string, Promise<ServedFile>>();
  return async (file) => {
    const isManifest = file.type === "application/manifest+json";
    if (!file.isPage && !isManifest) return file;
    const face = await read();
    if (face.name === NAME && face.logo === "") return file;
    const key = JSON.stringify([file.etag, face.name, face.logo]);
    let branded = cache.get(key);
    if (!branded) {
      const text = new TextDecoder().decode(file.body);
      const body = new TextEncoder().encode(isManifest ? applyToManifest(text, face) : applyToPage(text, face));
      const { etag: _etag, twins: _twins, ...rest } = file;
      const brandedFile: WebFile = { ...rest, body, pictures: parseOrigin(face.logo) };
      branded = withTwins(brandedFile, "fast");
      if (cache.size >= MAX_CACHED) cache.clear();
      cache.set(key, branded);
    }
    return branded;
  };
};
