// Headers of every response, including those of the node itself.
import { WIRE_VERSION } from "../version.ts";

/**
 * Prevents content sniffing, and keeps caches from storing responses that may contain secrets (rule HT-11). Upstream clients treat a 404
 * without a build version as another kind of server; a version that begins with v0.0.0 is compatible with all of theirs.
 */
export const COMMON_HEADERS = {
  "x-content-type-options": "nosniff",
  "cache-control": "no-store",
  "x-coder-build-version": WIRE_VERSION,
};
