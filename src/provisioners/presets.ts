// Presets of a template version by their id. A preset has no row of its own, so its id is made from the version's and its name.
import { sha256, uuidFromBytes } from "#base/ids.ts";
import type { Manifest, ManifestPreset } from "#schema/templates/manifest.ts";

/** The id of a version's preset; the same at every call (a version-8 UUID). */
export const presetId = (version_id: string, name: string): string => {
  const bytes = Buffer.from(sha256(`preset/${version_id}/${name}`), "hex").subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return uuidFromBytes(bytes);
};

/** The preset with this id; undefined when the version has none of that id. */
export const presetWithId = (manifest: Manifest, version_id: string, id: string): ManifestPreset | undefined =>
  manifest.presets?.find(({ name }) => presetId(version_id, name) === id.toLowerCase());
