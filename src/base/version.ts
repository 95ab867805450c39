// The version of Slipway. `bun run build` defines both names; run from source, the version is package.json's and there is no commit.
import { version as sourceVersion } from "../../package.json";

declare const SLIPWAY_BUILD_VERSION: string | undefined;
declare const SLIPWAY_BUILD_COMMIT: string | undefined;
declare const SLIPWAY_BUILD_RELEASE_KEY: string | undefined;

export const VERSION: string = typeof SLIPWAY_BUILD_VERSION === "string" ? SLIPWAY_BUILD_VERSION : sourceVersion;

/**
 * The version for clients of Coder servers, in build information, the header and the program. It is not a version of Coder; for this form,
 * the editors' plug-ins assume every feature.
 */
export const WIRE_VERSION = `v0.0.0-devel+slipway.${VERSION}`;

/** The Git commit the binary was built from, or an empty string. */
export const COMMIT: string = typeof SLIPWAY_BUILD_COMMIT === "string" ? SLIPWAY_BUILD_COMMIT : "";

/** The public keys whose releases the binary trusts, as minisign prints them, separated by spaces; empty when the build has none. */
export const RELEASE_KEY: string = typeof SLIPWAY_BUILD_RELEASE_KEY === "string" ? SLIPWAY_BUILD_RELEASE_KEY : "";
