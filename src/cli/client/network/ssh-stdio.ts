// Connects standard input and output to a workspace's SSH server, for OpenSSH's ProxyCommand (rule CN-3).
import type { NetworkPeer } from "#src/tailnet/index.ts";
import { AGENT_PORT } from "#src/wire/index.ts";
import { getStreams } from "../../streams.ts";
import { EXIT, type VerbInput } from "../../verb.ts";
import { Traffic } from "./editor-files.ts";

/** Copies bytes in both directions until the workspace closes its side, and counts them. */
export const passStdio = async (
  input: VerbInput,
  peer: NetworkPeer,
  agent_id: string,
  traffic = new Traffic(),
): Promise<number> => {
  const streams = getStreams(input);
  const connection = await peer.dial(agent_id, AGENT_PORT.ssh, input.signal);
  const there = (async () => {
    for await (const chunk of streams.input()) {
      traffic.up(chunk.byteLength);
      await connection.write(chunk);
    }
    await connection.end();
  })();
  // A reader that stops is detected in the other direction.
  there.catch(() => {});
  for await (const chunk of connection) {
    traffic.down(chunk.byteLength);
    await streams.write(chunk);
  }
  return EXIT.ok;
};
