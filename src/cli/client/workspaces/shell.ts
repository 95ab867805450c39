// `slipway workspaces shell WORKSPACE[.AGENT] [-- COMMAND…]`: a shell in the workspace. At a terminal it is interactive and reconnects
// after a disconnect. In a pipe, the command's input and output are forwarded unmodified (rules CV-8 to CV-11).

import { isUuid, uuid } from "#base/ids.ts";
import { usageError } from "#base/usage-error.ts";
import { type Arguments, readArguments } from "../../arguments.ts";
import { VerbFailure } from "../../failure.ts";
import { promptIfMissing, takeOneWord } from "../../missing-arguments.ts";
import { getStreams } from "../../streams.ts";
import type { RunVerb, VerbInput } from "../../verb.ts";
import { type Remote, withServer } from "../remote.ts";
import { connectAgent } from "./agent.ts";
import { listOwnWorkspaces } from "./find.ts";
import { runPiped } from "./shell-pipe.ts";
import type { TerminalTarget } from "./shell-target.ts";
import { runTerminal } from "./shell-terminal.ts";

const SHAPE = { values: ["reconnect", "container", "container-user"] } as const;
type ShellArguments = Arguments<(typeof SHAPE.values)[number]>;

export const run: RunVerb = async (input) => {
  const args = readArguments(input.argv, SHAPE);
  const word = takeOneWord(input, args.words, "the workspace");
  const id = args.value.reconnect ?? uuid();
  if (!isUuid(id)) throw usageError("--reconnect", "expected a terminal's ID");
  if (args.afterDashes?.length === 0) throw usageError("--", "expected a command after it");
  const { inputIsTerminal, outputIsTerminal } = getStreams(input);
  return withServer("workspaces shell", input, args.value, async (remote) => {
    const name = await promptIfMissing(input, word, "Workspace", () => listOwnWorkspaces(remote.client));
    const target = await openTarget(input, remote, name, id.toLowerCase(), args);
    const isPiped = !inputIsTerminal || !outputIsTerminal;
    if (isPiped && args.value.reconnect !== undefined) {
      throw new VerbFailure("--reconnect needs a terminal: earlier output would be printed again");
    }
    return isPiped ? runPiped(input, remote, target) : runTerminal(input, remote, target);
  });
};

/** Starts a stopped workspace and waits for its agent. */
const openTarget = async (
  input: VerbInput,
  remote: Remote,
  name: string,
  id: string,
  { value, afterDashes }: ShellArguments,
): Promise<TerminalTarget> => {
  const { workspace, agent_id } = await connectAgent(input, remote, name);
  const { container, "container-user": container_user } = value;
  return {
    workspace,
    agent_id,
    id,
    container,
    command: afterDashes?.join(" "),
    query: { reconnect: id, ...(container ? { container } : {}), ...(container_user ? { container_user } : {}) },
  };
};
