// `slipway login token`: prints the token of the stored session, for programs that need one.
import { readArguments, requireNoWords } from "../arguments.ts";
import type { RunVerb } from "../verb.ts";
import { explainError, makeClient } from "./remote.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  requireNoWords(words);
  return explainError("login token", input, async () => {
    const { token = "", url } = makeClient(input, value);
    input.print(has.json ? JSON.stringify({ url: url.href, token }) : token);
  });
};
