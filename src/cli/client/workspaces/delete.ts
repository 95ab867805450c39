// `slipway workspaces delete WORKSPACE [--yes]`: deletes it with all that is in it, once somebody has said so again (rule CV-6).
import { usageError } from "#base/usage-error.ts";
import { readArguments } from "../../arguments.ts";
import { Asker } from "../../ask.ts";
import { VerbFailure } from "../../failure.ts";
import { onlyWord } from "../../options.ts";
import { streamsOf } from "../../streams.ts";
import { EXIT, type RunVerb, type VerbInput } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { askForBuild, finishBuild } from "./build.ts";
import { workspaceNamed } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { switches: ["yes", "orphan", "no-wait"] });
  const name = onlyWord(words, "the workspace");
  if (!has.yes && !streamsOf(input).inputIsTerminal) {
    throw usageError("--yes", "nobody can be asked here, so deleting needs it");
  }
  return withServer("workspaces delete", input, value, async (remote) => {
    const workspace = await workspaceNamed(remote.client, name);
    if (!has.yes) await mustBeMeant(input, workspace.name);
    const orphan = has.orphan ? { orphan: true } : {};
    const build = await askForBuild(remote.client, workspace, { transition: "delete", ...orphan });
    return build ? finishBuild(input, remote, workspace, build, has) : EXIT.ok;
  });
};

const mustBeMeant = async (input: VerbInput, name: string): Promise<void> => {
  await using asker = new Asker(streamsOf(input), input.printError);
  const typed = await asker.line(`This deletes ${name} and everything in it. Type its name: `);
  if (typed !== name) throw new VerbFailure("that was not its name; nothing was deleted");
};
