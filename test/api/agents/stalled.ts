// A follower of an agent's log that stops reading, like a hung browser or a suspended laptop.
import type { AgentLog } from "#schema/agents/agent-log.ts";
import { BareSocket, type CloseFrame, closeFrame } from "#test/support/net/bare-socket.ts";

/** The size of the first message, an empty array directly after the upgrade. From then on, the follower gets new lines. */
const FIRST_FRAME_BYTES = 4;

/** Opens the WebSocket and stops reading after the first message. */
export const openStalledFollower = (url: URL, path: string, token: string): Promise<BareSocket> =>
  BareSocket.open(url, path, token, FIRST_FRAME_BYTES);

/** Reads all remaining lines, and the close frame if there is one. */
export const readLogs = async (follower: BareSocket): Promise<{ logs: AgentLog[]; close: CloseFrame | undefined }> => {
  const logs: AgentLog[] = [];
  for await (const frame of follower.frames()) {
    if (frame.opcode === 8) return { logs, close: closeFrame(frame) };
    if (frame.opcode === 1) logs.push(...(JSON.parse(frame.payload.toString("utf8")) as AgentLog[]));
  }
  return { logs, close: undefined };
};
