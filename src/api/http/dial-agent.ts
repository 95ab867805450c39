// Opens a WebSocket to an agent's daemon, for routes that relay its messages.
import { AppError } from "#base/errors.ts";
import { generateBytes } from "#base/ids.ts";
import { refusal } from "#domain/agents/containers.ts";
import { WebSocketFrames } from "#src/wire/index.ts";
import type { ApiContext } from "../context.ts";

const TIMEOUT_MS = 30_000;

/**
 * Queries the daemon first, so that its refusal becomes the response. Rejects with 400 when it is not connected and with 408 when it does
 * not respond within 30 s.
 */
export const dialAgentSocket = async (
  { clock, agentHttp }: Pick<ApiContext, "clock" | "agentHttp">,
  agent_id: string,
  path: string,
  longest: number,
): Promise<WebSocketFrames> => {
  const timeout = new AbortController();
  const timer = clock.after(TIMEOUT_MS, () => timeout.abort());
  try {
    const answer = await agentHttp.upgrade(agent_id, {
      method: "GET",
      path,
      headers: [
        ["connection", "Upgrade"],
        ["upgrade", "websocket"],
        ["sec-websocket-version", "13"],
        ["sec-websocket-key", Buffer.from(generateBytes(16)).toString("base64")],
      ],
      signal: timeout.signal,
    });
    if ("response" in answer) throw await refusal(answer.response);
    return new WebSocketFrames(answer.stream, longest);
  } catch (error) {
    if (!timeout.signal.aborted) throw error;
    throw new AppError("timeout", "The agent did not answer within 30 s.");
  } finally {
    timer.cancel();
  }
};
