// Connects routes to an agent's daemon: opens a WebSocket for relaying its messages, and limits the memory of large responses.
import { AppError } from "#base/errors.ts";
import { generateBytes } from "#base/ids.ts";
import { toAgentError } from "#domain/agents/containers.ts";
import { type AnswerReserve, type MessageBudget, WebSocketFrames } from "#src/wire/index.ts";
import type { ApiContext } from "../context.ts";

const TIMEOUT_MS = 30_000;
const MEMORY_TIMEOUT_MS = 10_000;
/** Maximum time for one large message, because its memory is unavailable to others until it is complete. */
const MESSAGE_TIMEOUT_MS = 60_000;
/** Smaller messages do not wait for memory. Thousands of sockets can each have one incomplete message. */
const SMALL_MESSAGE_BYTES = 64 * 1024;
/** Memory of a large message as a multiple of its size: its bytes, its text, its parsed values and the message to the client. */
const MESSAGE_FACTOR = 4;
/** Smaller responses do not wait for memory. Hundreds of requests can each hold one. */
const SMALL_ANSWER_BYTES = 256 * 1024;
/** Memory of a large response: its bytes, its text, its parsed values and the response to the client. */
const ANSWER_BYTES = 16 * 1024 * 1024;

/**
 * Returns the options for reading a large response of an agent: it waits for memory of the caller's share, which is held until the response
 * has been sent (rule PT-11). The wait rejects with 503 after 10 s.
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

type MessageOptions = Pick<ApiContext, "clock" | "callMemory"> & {
  readonly user_id: string;
  /** Maximum bytes of a message. */
  readonly maxBytes: number;
  /** Called when the memory of a message has been in use for too long. */
  readonly onTimeout: () => void;
};

/**
 * Takes memory of the caller's share for each large message of an agent, until it is released (rule PT-11). The agent waits until the
 * memory is available.
 */
export class MessageMemory implements MessageBudget {
  readonly #options: MessageOptions;
  #bytes = 0;
  #holdEnd: AbortController | undefined;

  constructor(options: MessageOptions) {
    this.#options = options;
  }

  add(bytes: number): void | Promise<void> {
    this.#bytes += bytes;
    if (this.#bytes > SMALL_MESSAGE_BYTES && !this.#holdEnd) return this.#take();
  }

  release(): void {
    this.#bytes = 0;
    this.#holdEnd?.abort();
    this.#holdEnd = undefined;
  }

  async #take(): Promise<void> {
    const { clock, callMemory, user_id, maxBytes, onTimeout } = this.#options;
    const holdEnd = new AbortController();
    const { signal } = holdEnd;
    this.#holdEnd = holdEnd;
    const hold = await callMemory.take(user_id, MESSAGE_FACTOR * maxBytes, signal);
    const timer = clock.after(MESSAGE_TIMEOUT_MS, onTimeout);
    const releaseMemory = (): void => {
      timer.cancel();
      hold.release();
    };
    if (signal.aborted) releaseMemory();
    else signal.addEventListener("abort", releaseMemory);
  }
}

/**
 * Queries the daemon first, so that its refusal becomes the response. Rejects with 400 when it is not connected and with 408 when it does
 * not respond within 30 s. Messages have at most `maxBytes` bytes, and large ones take memory of the user's share.
 */
export const dialAgentSocket = async (
  { clock, agentHttp, callMemory }: Pick<ApiContext, "clock" | "agentHttp" | "callMemory">,
  agent_id: string,
  path: string,
  maxBytes: number,
  user_id: string,
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
    if ("response" in answer) throw await toAgentError(answer.response);
    const onTimeout = (): void => {
      if (frames.isIncomplete) frames.reset("The agent sends a large message too slowly.");
    };
    const memory = new MessageMemory({ clock, callMemory, user_id, maxBytes, onTimeout });
    const frames = new WebSocketFrames(answer.stream, maxBytes, memory);
    return frames;
  } catch (error) {
    if (!timeout.signal.aborted) throw error;
    throw new AppError("timeout", "The agent did not answer within 30 s.");
  } finally {
    timer.cancel();
  }
};
