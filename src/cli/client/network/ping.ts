// `slipway ping WORKSPACE`: the round-trip time to a workspace's agent, through the tunnel that everything else uses (rule CN-5).
import { pause } from "#base/retry.ts";
import { usageError } from "#base/usage-error.ts";
import { readArguments } from "../../arguments.ts";
import { promptIfMissing, takeOneWord } from "../../missing-arguments.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { listOwnWorkspaces } from "../workspaces/find.ts";
import { withAgent } from "./target.ts";

const TIMEOUT_MS = 5_000;
const PING_INTERVAL_MS = 1_000;

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: ["count"] });
  const word = takeOneWord(input, words, "the workspace");
  const count = value.count === undefined ? Number.POSITIVE_INFINITY : Number(value.count);
  if (!(count >= 1)) throw usageError("--count", "expected a number of at least 1");
  return withServer("ping", input, value, async (remote) => {
    const name = await promptIfMissing(input, word, "Workspace", () => listOwnWorkspaces(remote.client));
    return withAgent(input, remote, name, async ({ joined, agent_id, workspace }) => {
      // The first ping includes the key exchange and is not counted.
      await joined.peer.ping(agent_id, TIMEOUT_MS);
      let answerCount = 0;
      for (let i = 0; i < count && !input.signal.aborted; i += 1) {
        if (i > 0) await pause(input.clock, PING_INTERVAL_MS);
        const elapsedMs = await joined.peer.ping(agent_id, TIMEOUT_MS);
        if (elapsedMs !== undefined) answerCount += 1;
        if (has.json) input.print(JSON.stringify({ name: workspace.name, milliseconds: elapsedMs ?? null }));
        else
          input.print(
            elapsedMs === undefined
              ? `${workspace.name} is not responding`
              : `${workspace.name} responded in ${elapsedMs.toFixed(1)} ms`,
          );
      }
      return answerCount > 0 ? EXIT.ok : EXIT.failed;
    });
  });
};
