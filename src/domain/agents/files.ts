// Lists and reads files of a workspace through its daemon (rule PT-10). The daemon's responses are untrusted: limited and validated. File
// contents are streamed and not stored.
import { Value } from "@sinclair/typebox/value";
import { AppError } from "#base/errors.ts";
import { DirectoryListing } from "#schema/agents/agent-files.ts";
import { type AnswerReserve, type HttpResponse, WireError } from "#src/wire/index.ts";
import type { DomainContext } from "../context.ts";
import { refusal } from "./containers.ts";

/** Maximum bytes of a listing: ten thousand entries with long paths. */
const MAX_LISTING = 4 * 1024 * 1024;
const TIMEOUT_MS = 30_000;

type Deps = Pick<DomainContext, "clock" | "agentHttp">;

type DaemonRequest = { readonly method: "GET" | "POST"; readonly path: string; readonly json?: unknown };

/** Returns what `read` returns for a successful response. Throws 408 on a timeout, and the agent's own error. */
const requestDaemon = async <T>(
  ctx: Deps,
  agent_id: string,
  requested: DaemonRequest,
  read: (response: HttpResponse) => T | Promise<T>,
): Promise<T> => {
  const timeout = new AbortController();
  const timer = ctx.clock.after(TIMEOUT_MS, () => timeout.abort());
  try {
    const response = await ctx.agentHttp.request(agent_id, { ...requested, signal: timeout.signal });
    if (response.status !== 200) throw await refusal(response);
    return await read(response);
  } catch (error) {
    if (!timeout.signal.aborted) throw error;
    throw new AppError("timeout", "The agent did not answer within 30 s.");
  } finally {
    timer.cancel();
  }
};

/** Lists a folder. `path` is relative to the agent's folder unless it begins with `/` or `~`. */
export const listAgentFolder = async (
  ctx: Deps,
  agent_id: string,
  path: string,
  reserve: AnswerReserve,
): Promise<DirectoryListing> => {
  const requested = { method: "POST", path: "/api/v0/list-directory", json: { path } } as const;
  const answer = await requestDaemon(ctx, agent_id, requested, (response) => {
    response.reserve = reserve;
    return response.json<unknown>(MAX_LISTING);
  });
  const found = Value.Clean(DirectoryListing, answer);
  if (!Value.Check(DirectoryListing, found))
    throw new WireError("protocol", "The agent's response is not a list of files.");
  return found;
};

/** Returns a file's size, and a stream of at most `limit` bytes. */
export const readAgentFile = async (
  ctx: Deps,
  agent_id: string,
  path: string,
  limit?: number,
): Promise<{ size: number; bytes: AsyncGenerator<Uint8Array, void, undefined> }> => {
  const query = new URLSearchParams({ path, ...(limit === undefined ? {} : { limit: String(limit) }) });
  const requested = { method: "GET", path: `/api/v0/read-file?${query}` } as const;
  const { headers, body } = await requestDaemon(ctx, agent_id, requested, (response) => response);
  return { size: Number(headers.get("x-file-size") ?? 0), bytes: body };
};
