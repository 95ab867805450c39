// Uploads a file to a workspace, where its daemon writes it (rule PT-8). The body is streamed and not stored.
import { AppError } from "#base/errors.ts";
import type { DomainContext } from "../context.ts";
import { toAgentError } from "./containers.ts";

/** Maximum bytes of one file, equal to the daemon's limit. */
export const MAX_AGENT_FILE_BYTES = 33_554_432;
const TIMEOUT_MS = 120_000;
const MAX_ANSWER_BYTES = 64 * 1024;

export type AgentUpload = {
  readonly name: string;
  /** The terminal whose folder is the target; empty means the agent's folder. */
  readonly terminal: string;
  /** Used when no terminal is named; empty means the agent's folder. */
  readonly folder: string;
  readonly replace: boolean;
  readonly body: AsyncIterable<Uint8Array>;
};

/** Returns the path of the written file. Throws the agent's error, or 408 on a timeout. */
export const uploadToAgent = async (
  ctx: Pick<DomainContext, "clock" | "agentHttp">,
  agent_id: string,
  { name, terminal, folder, replace, body }: AgentUpload,
): Promise<{ path: string }> => {
  const timeout = new AbortController();
  const timer = ctx.clock.after(TIMEOUT_MS, () => timeout.abort());
  let bodyError: unknown;
  // A truncated or oversized body must also abort the request to the agent, which would otherwise wait for the rest.
  const streamBody = async function* (): AsyncGenerator<Uint8Array> {
    try {
      yield* body;
    } catch (error) {
      bodyError = error;
      timeout.abort();
      throw error;
    }
  };
  try {
    const query = new URLSearchParams({ name, terminal, folder, replace: String(replace) });
    const requested = { method: "POST", path: `/api/v0/upload?${query}`, body: streamBody(), signal: timeout.signal };
    const response = await ctx.agentHttp.request(agent_id, requested);
    if (response.status !== 200) throw await toAgentError(response);
    const answer = await response.json<{ path?: unknown }>(MAX_ANSWER_BYTES);
    if (typeof answer?.path === "string") return { path: answer.path };
    throw new AppError("overloaded", "The agent did not return the path of the file.");
  } catch (error) {
    if (bodyError !== undefined) throw bodyError;
    if (!timeout.signal.aborted) throw error;
    throw new AppError("timeout", "The agent did not store the file within 120 s.");
  } finally {
    timer.cancel();
  }
};
