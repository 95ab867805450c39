// Finds presets of a template version by ID. Presets are not rows of the database, so their IDs are derived from the version's ID and the
// preset's name.
import { sha256, uuidFromBytes } from "#base/ids.ts";
import type { Manifest, ManifestPreset } from "#schema/templates/manifest.ts";

/** Returns the stable ID of a version's preset (a version-8 UUID). */
export const toPresetId = (version_id: string, name: string): string => {
  const bytes = Buffer.from(sha256(`preset/${version_id}/${name}`), "hex").subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return uuidFromBytes(bytes);
};

/** Returns the preset with this ID; undefined if the version does not have it. */
export const findPreset = (manifest: Manifest, version_id: string, id: string): ManifestPreset | undefined =>
  manifest.presets?.find(({ name }) => toPresetId(version_id, name) === id.toLowerCase());
