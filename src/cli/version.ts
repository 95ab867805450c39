// `slipway version [--json]`.
import { usageError } from "#base/usage-error.ts";
import { COMMIT, VERSION } from "#base/version.ts";
import { EXIT, type RunVerb, takeSwitch } from "./verb.ts";

export const run: RunVerb = async ({ argv, print }) => {
  const { given: json, rest } = takeSwitch(argv, "--json");
  if (rest[0] !== undefined) throw usageError(rest[0], "unexpected argument; `version` takes only --json");
  const facts = { version: VERSION, commit: COMMIT, bun: Bun.version };
  print(json ? JSON.stringify(facts) : `Slipway ${VERSION}${COMMIT ? ` (${COMMIT.slice(0, 12)})` : ""}`);
  return EXIT.ok;
};
