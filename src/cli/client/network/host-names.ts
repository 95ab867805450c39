// How OpenSSH calls workspaces: a prefix, the workspace, and where needed its owner and agent. A host's name has no slashes, so two hyphens
// stand for one (rule CN-4).
import { VerbFailure } from "../../failure.ts";

export const PREFIX = "slipway.";

/** `slipway.dev`, `slipway.alice--dev.main` as the words of other verbs: `dev`, `alice/dev.main`. Throws VerbFailure without the prefix. */
export const workspaceOfHost = (host: string, prefix: string): string => {
  if (!host.startsWith(prefix)) throw new VerbFailure(`${host} does not begin with ${prefix}`);
  const name = host.slice(prefix.length);
  const at = name.indexOf("--");
  return at < 0 ? name : `${name.slice(0, at)}/${name.slice(at + 2)}`;
};
