// Workspaces kept ready for somebody: the built-in account that owns them until they are claimed (facts/platform 2.8), and what a
// template's preset says about them.
import type { ManifestPreset } from "./manifest.ts";

export const PREBUILDS_USER_ID = "c42fdf75-3097-471c-8c33-fb52454d81c0";
export const PREBUILDS_USERNAME = "prebuilds";

/** How many workspaces a preset keeps ready, and after how many milliseconds an unclaimed one is replaced; 0 = never. */
export const prebuildsOf = ({ prebuilds }: ManifestPreset): { instances: number; ttl_ms: number } =>
  typeof prebuilds === "number"
    ? { instances: prebuilds, ttl_ms: 0 }
    : { instances: prebuilds?.instances ?? 0, ttl_ms: prebuilds?.ttl_ms ?? 0 };
