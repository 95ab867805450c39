// `slipway speedtest WORKSPACE`: how much the private network carries to or from a workspace (rule CN-5).
import { usageError } from "#base/usage-error.ts";
import type { TcpConnection } from "#src/tailnet/tcp/connection.ts";
import { AGENT_PORT } from "#src/wire/agent-dialer.ts";
import { readArguments } from "../../arguments.ts";
import { oneWord, orAsked } from "../../asked.ts";
import { VerbFailure } from "../../failure.ts";
import { EXIT, type RunVerb, type VerbInput } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { ownWorkspaces } from "../workspaces/find.ts";
import { withAgent } from "./target.ts";

const DIRECTION = { down: 0, up: 1 } as const;
const VERSION = 2;
const BLOCK = new Uint8Array(64 * 1024);

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: ["direction", "time"] });
  const word = oneWord(input, words, "the workspace");
  const { direction = "down", time = "5" } = value;
  if (direction !== "down" && direction !== "up") throw usageError("--direction", "expected down or up");
  const seconds = Number(time.replace(/s$/, ""));
  if (!(seconds > 0 && seconds <= 60)) throw usageError("--time", "expected up to 60 seconds, such as 5s");
  return withServer("speedtest", input, value, async (remote) => {
    const name = await orAsked(input, word, "Workspace", () => ownWorkspaces(remote.client));
    return withAgent(input, remote, name, async ({ joined, agent_id }) => {
      const connection = await joined.peer.dial(agent_id, AGENT_PORT.speed_test, input.signal);
      const { bytes, ms } = await measured(input, connection, direction, seconds);
      const rate = bytes / 1e6 / (ms / 1_000);
      if (has.json) input.print(JSON.stringify({ direction, seconds: ms / 1_000, bytes, megabytes_per_second: rate }));
      else
        input.print(
          `${direction}: ${(bytes / 1e6).toFixed(1)} MB in ${(ms / 1_000).toFixed(1)} s, ${rate.toFixed(1)} MB/s`,
        );
      return EXIT.ok;
    });
  });
};

const measured = async (
  { clock, signal }: VerbInput,
  connection: TcpConnection,
  direction: keyof typeof DIRECTION,
  seconds: number,
): Promise<{ bytes: number; ms: number }> => {
  const asked = { version: VERSION, time: seconds * 1e9, direction: DIRECTION[direction] };
  await connection.write(new TextEncoder().encode(`${JSON.stringify(asked)}\n`));
  const answer = await connection.read();
  if (!answer) throw new VerbFailure("the workspace does not test");
  const begun = clock.monotonic();
  let bytes = Math.max(0, answer.byteLength - "{}\n".length);
  if (direction === "down") for await (const chunk of connection) bytes += chunk.byteLength;
  else {
    while (clock.monotonic() - begun < seconds * 1_000 && !signal.aborted) {
      await connection.write(BLOCK);
      bytes += BLOCK.byteLength;
    }
    await connection.end();
    // The other side ends once it has read everything.
    while ((await connection.read()) !== undefined);
  }
  return { bytes, ms: clock.monotonic() - begun };
};
