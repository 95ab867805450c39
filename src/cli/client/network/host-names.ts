// Maps OpenSSH host names to workspaces: a prefix, the workspace, and optionally its owner and agent. Host names cannot contain slashes, so
// two hyphens replace one (rule CN-4).
import { VerbFailure } from "../../failure.ts";

export const DEFAULT_PREFIX = "slipway.";

/**
 * Converts `slipway.dev` and `slipway.alice--dev.main` to the form of other commands: `dev`, `alice/dev.main`. Throws VerbFailure if the
 * prefix is missing.
 */
export const parseHost = (host: string, prefix: string): string => {
  if (!host.startsWith(prefix)) throw new VerbFailure(`${host} does not begin with ${prefix}`);
  const name = host.slice(prefix.length);
  const separatorIndex = name.indexOf("--");
  return separatorIndex < 0 ? name : `${name.slice(0, separatorIndex)}/${name.slice(separatorIndex + 2)}`;
};
