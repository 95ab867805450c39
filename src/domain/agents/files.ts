// Looking into a workspace's files from outside: its daemon lists and reads them (rule PT-10). What it says is a stranger's: bounded and
// checked; a file goes through as it comes, and nothing of it is kept here.
import { Value } from "@sinclair/typebox/value";
import { AppError } from "#base/errors.ts";
import { DirectoryListing } from "#schema/agents/agent-files.ts";
import { type HttpResponse, WireError } from "#src/wire/index.ts";
import type { DomainContext } from "../context.ts";
import { refusal } from "./containers.ts";

/** Bytes of a listing: ten thousand entries with long names. */
const MAX_LISTING = 16 * 1024 * 1024;
const TIMEOUT_MS = 30_000;

type Deps = Pick<DomainContext, "clock" | "agentHttp">;

type Asked = { readonly method: "GET" | "POST"; readonly path: string; readonly json?: unknown };

/** The head of a good answer. Throws 408 when none comes in time, and what the agent says when it refuses. */
const ask = async (ctx: Deps, agent_id: string, asked: Asked): Promise<HttpResponse> => {
  const late = new AbortController();
  const timer = ctx.clock.after(TIMEOUT_MS, () => late.abort());
  try {
    const response = await ctx.agentHttp.request(agent_id, { ...asked, signal: late.signal });
    if (response.status !== 200) throw await refusal(response);
    return response;
  } catch (error) {
    if (!late.signal.aborted) throw error;
    throw new AppError("timeout", "The agent did not answer within 30 s.");
  } finally {
    timer.cancel();
  }
};

/** What is in a folder. `path` is relative to the agent's folder unless it begins with `/` or `~`. */
export const listAgentFolder = async (ctx: Deps, agent_id: string, path: string): Promise<DirectoryListing> => {
  const response = await ask(ctx, agent_id, { method: "POST", path: "/api/v0/list-directory", json: { path } });
  const found = Value.Clean(DirectoryListing, await response.json<unknown>(MAX_LISTING));
  if (!Value.Check(DirectoryListing, found))
    throw new WireError("protocol", "The agent's response is not a list of files.");
  return found;
};

/** The file's size, and its bytes as they come, at most `limit` of them. */
export const readAgentFile = async (
  ctx: Deps,
  agent_id: string,
  path: string,
  limit?: number,
): Promise<{ size: number; bytes: AsyncGenerator<Uint8Array, void, undefined> }> => {
  const query = new URLSearchParams({ path, ...(limit === undefined ? {} : { limit: String(limit) }) });
  const { headers, body } = await ask(ctx, agent_id, { method: "GET", path: `/api/v0/read-file?${query}` });
  return { size: Number(headers.get("x-file-size") ?? 0), bytes: body };
};
