// For routes that ask an agent's daemon: opens a WebSocket whose messages they relay, and limits the memory of large answers.
import { AppError } from "#base/errors.ts";
import { generateBytes } from "#base/ids.ts";
import { refusal } from "#domain/agents/containers.ts";
import { type AnswerReserve, WebSocketFrames } from "#src/wire/index.ts";
import type { ApiContext } from "../context.ts";

const TIMEOUT_MS = 30_000;
const MEMORY_TIMEOUT_MS = 10_000;
/** Smaller answers never wait. Hundreds of requests can hold as much at a time. */
const SMALL_ANSWER_BYTES = 256 * 1024;
/** What a large answer takes: its bytes, its text, its values and the response to the client. */
const ANSWER_BYTES = 16 * 1024 * 1024;

/**
 * Returns the wait before a large answer of an agent is read: for memory of the caller's share, which is held until the response has been
 * sent (rule PT-11). The wait rejects with 503 after 10 s.
 */
export const reserveAnswer = (
  { clock, callMemory, requests }: Pick<ApiContext, "clock" | "callMemory" | "requests">,
  request: Request,
  user_id: string,
): AnswerReserve => ({
  above: SMALL_ANSWER_BYTES,
  wait: async () => {
    const timeout = new AbortController();
    const timer = clock.after(MEMORY_TIMEOUT_MS, () =>
      timeout.abort(new AppError("overloaded", "Too many large answers of agents are being read. Please retry.")),
    );
    try {
      const signal = AbortSignal.any([timeout.signal, request.signal]);
      const hold = await callMemory.take(user_id, ANSWER_BYTES, signal);
      requests.pages.releaseAfterAnswer(request, () => hold.release());
    } finally {
      timer.cancel();
    }
  },
});

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
