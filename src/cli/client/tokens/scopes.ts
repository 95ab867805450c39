// `slipway tokens scopes`: lists the scopes that a token can have.
import { readArguments, requireNoWords } from "../../arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  requireNoWords(words);
  return withServer("tokens scopes", input, value, async ({ client }) => {
    const { external } = await client.get("/api/v2/auth/scopes");
    input.print(has.json ? JSON.stringify(external) : external.join("\n"));
  });
};
