// `slipway version [--json]`.
import { COMMIT, VERSION, WIRE_VERSION } from "#base/version.ts";
import { readArguments, requireNoWords } from "./arguments.ts";
import { EXIT, type RunVerb } from "./verb.ts";

export const run: RunVerb = async ({ argv, print }) => {
  const { words, has } = readArguments(argv);
  requireNoWords(words);
  const versions = { version: WIRE_VERSION, slipway: VERSION, commit: COMMIT, bun: Bun.version };
  print(has.json ? JSON.stringify(versions) : `Slipway v${VERSION}${COMMIT ? ` (${COMMIT.slice(0, 12)})` : ""}`);
  return EXIT.ok;
};
