// What every answer carries, a node's own among them.
import { WIRE_VERSION } from "../version.ts";

/**
 * It is never taken for another type, and caches keep no copy that may hold a secret (rule HT-11). Genuine clients take a 404 without a build
 * version for another kind of server; one that begins with v0.0.0 fits every version of theirs.
 */
export const COMMON_HEADERS = {
  "x-content-type-options": "nosniff",
  "cache-control": "no-store",
  "x-coder-build-version": WIRE_VERSION,
};
