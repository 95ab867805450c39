// Pictures as models take them: what is larger than any provider wants is scaled down before it is sent, off the main thread. Used by
// prompt-results.ts and prompt.ts (rules DT-5, MO-42).
import { log } from "#base/log.ts";
import type { Attachment } from "./attachments.ts";

/** Pixels of the longest side that every provider takes, also alongside many other pictures. */
const MAX_SIDE = 2_000;
/** Scaled to that, what is larger: what providers do themselves with anything above it, and bill no less for. */
const SCALED_SIDE = 1_568;
/** Bytes, which are a third more as text; the strictest provider takes 5 MiB of that. */
const MAX_BYTES = 3_932_160;
/** More than that is not decoded. */
const MAX_PIXELS = 100_000_000;
const QUALITY = 85;
const KEPT = 16;

/** `note`: what the model has to know of the picture it is shown. */
export type Shown = { readonly file: Attachment; readonly note?: string };

const byId = new Map<string, Promise<Shown>>();

export const isPicture = (media_type: string): boolean => media_type.startsWith("image/");

/** The same file when it is small enough, or cannot be read as a picture: then the provider decides. `id` names the file for good. */
export const fitted = async (id: string, file: Attachment): Promise<Shown> => {
  if (!isPicture(file.media_type)) return { file };
  const known = byId.get(id);
  if (known) return known;
  const made = scaledDown(file).catch((error): Shown => {
    log("chats").debug("the picture {name} was not scaled: {error}", { name: file.name, error });
    return { file };
  });
  // Only what was work is kept.
  if ((await made).note === undefined) return made;
  byId.set(id, made);
  const [oldest = ""] = byId.keys();
  if (byId.size > KEPT) byId.delete(oldest);
  return made;
};

const scaledDown = async (file: Attachment): Promise<Shown> => {
  const image = () => new Bun.Image(file.bytes, { maxPixels: MAX_PIXELS });
  const { width, height } = await image().metadata();
  const longest = Math.max(width, height);
  if (longest <= MAX_SIDE && file.bytes.byteLength <= MAX_BYTES) return { file };
  const side = Math.min(longest, SCALED_SIDE);
  const smaller = () => image().resize(side, side, { fit: "inside", withoutEnlargement: true });
  const png = file.media_type === "image/png" ? await smaller().png().bytes() : undefined;
  const isPng = png !== undefined && png.byteLength <= MAX_BYTES;
  const bytes = isPng ? png : await smaller().jpeg({ quality: QUALITY }).bytes();
  const now = await new Bun.Image(bytes).metadata();
  return {
    file: { ...file, media_type: isPng ? "image/png" : "image/jpeg", bytes },
    note: `The picture is shown with ${now.width} x ${now.height} pixels; in full it has ${width} x ${height}.`,
  };
};
