// Giving a file to a workspace: its daemon writes it (rule PT-8). The body goes through as it comes in; nothing of it is kept here.
import { AppError } from "#base/errors.ts";
import type { DomainContext } from "../context.ts";
import { refusal } from "./containers.ts";

/** Bytes of one file, as many as a daemon writes. */
export const AGENT_FILE_LIMIT = 33_554_432;
const TIMEOUT_MS = 120_000;
const MAX_ANSWER = 64 * 1024;

export type AgentUpload = {
  readonly name: string;
  /** Whose folder it goes to; empty: the agent's. */
  readonly terminal: string;
  /** Where no terminal is named; empty: the agent's. */
  readonly folder: string;
  readonly replace: boolean;
  readonly body: AsyncIterable<Uint8Array>;
};

/** Where it was written. Throws what the agent says when it refuses, 408 when that takes too long. */
export const uploadToAgent = async (
  ctx: Pick<DomainContext, "clock" | "agentHttp">,
  agent_id: string,
  { name, terminal, folder, replace, body }: AgentUpload,
): Promise<{ path: string }> => {
  const late = new AbortController();
  const timer = ctx.clock.after(TIMEOUT_MS, () => late.abort());
  let broken: unknown;
  // A body that breaks off, or is too long, must end the request to the agent as well: it would wait for the rest.
  const whole = async function* (): AsyncGenerator<Uint8Array> {
    try {
      yield* body;
    } catch (error) {
      broken = error;
      late.abort();
      throw error;
    }
  };
  try {
    const query = new URLSearchParams({ name, terminal, folder, replace: String(replace) });
    const asked = { method: "POST", path: `/api/v0/upload?${query}`, body: whole(), signal: late.signal };
    const response = await ctx.agentHttp.request(agent_id, asked);
    if (response.status !== 200) throw await refusal(response);
    const answer = await response.json<{ path?: unknown }>(MAX_ANSWER);
    if (typeof answer?.path === "string") return { path: answer.path };
    throw new AppError("overloaded", "The agent did not return the path of the file.");
  } catch (error) {
    if (broken !== undefined) throw broken;
    if (!late.signal.aborted) throw error;
    throw new AppError("timeout", "The agent did not store the file within 120 s.");
  } finally {
    timer.cancel();
  }
};
