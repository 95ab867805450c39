// Runs a command in this process, like src/main.ts, and returns its output.
import { readFileSync } from "node:fs";
import { type Clock, systemClock } from "#base/clock.ts";
import { UsageError } from "#base/usage-error.ts";
import { EXIT, type VerbInput } from "#src/cli/verb.ts";
import { VERBS } from "#src/cli/verbs.ts";

export type VerbResult = { code: number; printed: string; errors: string };

/** Runs `slipway name ...argv`. Files are read from `files` first, then from disk. */
export const runVerb = async (
  [name = "", ...argv]: readonly string[],
  {
    files = {},
    clock = systemClock,
    env = {},
  }: { files?: Readonly<Record<string, string>>; clock?: Clock; env?: Readonly<Record<string, string>> } = {},
): Promise<VerbResult> => {
  const result = { code: -1, printed: "", errors: "" };
  const input: VerbInput = {
    argv,
    env,
    clock,
    isTerminal: false,
    signal: new AbortController().signal,
    readFile: (path) => files[path] ?? readFileSync(path, "utf8"),
    print: (text) => {
      result.printed += `${text}\n`;
    },
    printError: (text) => {
      result.errors += text;
    },
  };
  const verb = VERBS.find((verb) => verb.name === name);
  if (!verb) throw new Error(`there is no verb ${name}`);
  const { run } = await verb.load();
  try {
    result.code = await run(input);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    result.code = EXIT.usage;
    result.errors += error.message;
  }
  return result;
};
