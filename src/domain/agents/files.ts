// Lists and reads files of a workspace through its daemon (rule PT-10). The daemon's responses are untrusted: limited and validated. File
// contents are streamed and not stored.
import { Value } from "@sinclair/typebox/value";
import { DirectoryListing } from "#schema/agents/agent-files.ts";
import { type AnswerReserve, WireError } from "#src/wire/index.ts";
import type { DomainContext } from "../context.ts";
import { requestDaemon } from "./containers.ts";

/** Maximum bytes of a listing: ten thousand entries with long paths. */
const MAX_LISTING = 4 * 1024 * 1024;

type Deps = Pick<DomainContext, "clock" | "agentHttp">;

const isOk = (status: number): boolean => status === 200;

/** Lists a folder. `path` is relative to the agent's folder unless it begins with `/` or `~`. */
export const listAgentFolder = async (
  ctx: Deps,
  agent_id: string,
  path: string,
  reserve: AnswerReserve,
): Promise<DirectoryListing> => {
  const requested = { method: "POST", path: "/api/v0/list-directory", json: { path } } as const;
  const answer = await requestDaemon(ctx, agent_id, requested, isOk, (response) => {
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
  const { headers, body } = await requestDaemon(ctx, agent_id, requested, isOk, (response) => response);
  return { size: Number(headers.get("x-file-size") ?? 0), bytes: body };
};
