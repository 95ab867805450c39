// Prepares images for models: scales down images that are larger than providers accept, off the main thread. Used by prompt-results.ts and
// prompt.ts (rules DT-5, MO-42).
import { log } from "#base/log.ts";
import { shareOfMemory } from "#base/system/memory.ts";
import { MemoryShare } from "#base/system/memory-share.ts";
import type { Attachment } from "./attachments.ts";

/** Maximum length in pixels that every provider accepts, even next to many other images. */
const MAX_SIDE = 2_000;
/** Larger images are scaled to this size. Providers would scale them too, and charge no less. */
const SCALED_SIDE = 1_568;
/** Maximum size in bytes, before base64 adds a third; the strictest provider's limit is 5 MiB of base64. */
const MAX_BYTES = 3_932_160;
const PIXEL_BYTES = 4;
/** Larger images are not decoded. */
const MAX_PIXELS = Math.min(100_000_000, shareOfMemory(1 / 8) / PIXEL_BYTES);
const MAX_DECODED_BYTES = MAX_PIXELS * PIXEL_BYTES;
const QUALITY = 85;
const MAX_CACHED = 16;

/** `note`: what the model must know about the image. */
export type ScaledPicture = { readonly file: Attachment; readonly note?: string };

/** The memory of all images that are being decoded: one of the largest, or several smaller ones. Others wait (rule MO-42). */
export const decodedPictures = new MemoryShare({ total: MAX_DECODED_BYTES, each: MAX_DECODED_BYTES });
const NEVER = new AbortController().signal;

const cachedPictures = new Map<string, Promise<ScaledPicture>>();

export const isPicture = (media_type: string): boolean => media_type.startsWith("image/");

/**
 * Returns the file unchanged if it is small enough or not a readable image; then the provider decides. `id` is permanent, so results are
 * cached.
 */
export const scaleToFit = async (id: string, file: Attachment): Promise<ScaledPicture> => {
  if (!isPicture(file.media_type)) return { file };
  const known = cachedPictures.get(id);
  if (known) return known;
  const scaling = scaleDown(file).catch((error): ScaledPicture => {
    log("chats").debug("the picture {name} was not scaled: {error}", { name: file.name, error });
    return { file };
  });
  // Only scaled images are cached.
  if ((await scaling).note === undefined) return scaling;
  cachedPictures.set(id, scaling);
  const [oldest = ""] = cachedPictures.keys();
  if (cachedPictures.size > MAX_CACHED) cachedPictures.delete(oldest);
  return scaling;
};

const scaleDown = async (file: Attachment): Promise<ScaledPicture> => {
  const openImage = () => new Bun.Image(file.bytes, { maxPixels: MAX_PIXELS });
  const { width, height } = await openImage().metadata();
  const longest = Math.max(width, height);
  if (longest <= MAX_SIDE && file.bytes.byteLength <= MAX_BYTES) return { file };
  if (width * height > MAX_PIXELS) return { file };
  using _hold = await decodedPictures.take(file.owner_id ?? "", width * height * PIXEL_BYTES, NEVER);
  const side = Math.min(longest, SCALED_SIDE);
  const resizeImage = () => openImage().resize(side, side, { fit: "inside", withoutEnlargement: true });
  const png = file.media_type === "image/png" ? await resizeImage().png().bytes() : undefined;
  const isPng = png !== undefined && png.byteLength <= MAX_BYTES;
  const bytes = isPng ? png : await resizeImage().jpeg({ quality: QUALITY }).bytes();
  const now = await new Bun.Image(bytes).metadata();
  return {
    file: { ...file, media_type: isPng ? "image/png" : "image/jpeg", bytes },
    note: `The picture is shown with ${now.width} x ${now.height} pixels; in full it has ${width} x ${height}.`,
  };
};
