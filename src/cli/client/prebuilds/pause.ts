// `slipway prebuilds status|pause|resume`: enables or pauses all prebuilt workspaces.
import { readArguments, requireNoWords } from "../../arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";

const PATH = "/api/v2/prebuilds/settings";

const makeVerb =
  (verb: string, reconciliation_paused?: boolean): RunVerb =>
  async (input) => {
    const { words, value, has } = readArguments(input.argv);
    requireNoWords(words);
    return withServer(`prebuilds ${verb}`, input, value, async ({ client }) => {
      const settings =
        reconciliation_paused === undefined
          ? await client.get(PATH)
          : await client.put(PATH, { reconciliation_paused });
      const message = settings.reconciliation_paused
        ? "Prebuilt workspaces are paused."
        : "Prebuilt workspaces are active.";
      input.print(has.json ? JSON.stringify(settings) : message);
    });
  };

export const status = makeVerb("status");
export const pause = makeVerb("pause", true);
export const resume = makeVerb("resume", false);
