// Queries a daemon about the containers of its workspace and passes on its errors (facts/platform 3.7). Used by the routes of containers
// and devcontainers. The daemon's responses are untrusted: their size is limited and they are validated.

import { Value } from "@sinclair/typebox/value";
import { AppError, type ErrorKind, STATUS } from "#base/errors.ts";
import { parseJson } from "#base/json/read.ts";
import { nullableUuid } from "#schema/nullable-uuid.ts";
import { type ContainerListing, FoundContainers } from "#schema/workspaces/container.ts";
import { type AnswerReserve, type HttpResponse, toWireProblem, WireError } from "#src/wire/index.ts";
import type { DomainContext } from "../context.ts";

/** Maximum bytes of a listing. */
export const MAX_LISTING = 4 * 1024 * 1024;
const TIMEOUT_MS = 30_000;
const MAX_ERROR_BYTES = 64 * 1024;

type Deps = Pick<DomainContext, "clock" | "agentHttp">;

type ContainersRequest = {
  readonly method: "GET" | "POST" | "DELETE";
  /** The path below the containers, or the query. */
  readonly rest: string;
  readonly reserve: AnswerReserve;
};

/** Returns the body of a successful response. Throws 408 on a timeout, and the agent's own error. */
export const requestContainers = async (
  ctx: Deps,
  agent_id: string,
  { method, rest, reserve }: ContainersRequest,
): Promise<string> => {
  const timeout = new AbortController();
  const timer = ctx.clock.after(TIMEOUT_MS, () => timeout.abort());
  try {
    const path = `/api/v0/containers${rest}`;
    const response = await ctx.agentHttp.request(agent_id, { method, path, signal: timeout.signal });
    if (response.status < 200 || response.status > 299) throw await refusal(response);
    response.reserve = reserve;
    return await response.text(MAX_LISTING);
  } catch (error) {
    if (!timeout.signal.aborted) throw error;
    throw new AppError("timeout", "The agent did not answer within 30 s.");
  } finally {
    timer.cancel();
  }
};

/** Returns a daemon's listing in the format for native or upstream callers. */
export const presentListing = (text: string, compat: boolean): ContainerListing => {
  let found: unknown;
  try {
    found = Value.Clean(FoundContainers, parseJson(text));
  } catch (error) {
    throw toWireProblem("The agent's response", error);
  }
  if (!Value.Check(FoundContainers, found))
    throw new WireError("protocol", "The agent's response is not a list of containers.");
  return {
    ...found,
    devcontainers: found.devcontainers.map((one) => ({ ...one, subagent_id: nullableUuid(one.subagent_id, compat) })),
  };
};

const KINDS = new Map<number, ErrorKind>(
  (["invalid", "forbidden", "not_found", "conflict", "internal"] as const).map((kind) => [STATUS[kind], kind]),
);

/** Returns the agent's error with its status; anything unexpected is a connection fault. */
export const refusal = async (response: HttpResponse): Promise<AppError> => {
  const kind = KINDS.get(response.status) ?? "overloaded";
  const output = await response.json<{ message?: unknown; detail?: unknown }>(MAX_ERROR_BYTES).catch(() => undefined);
  const text = (value: unknown): string => (typeof value === "string" ? value.slice(0, 2_000) : "");
  return new AppError(kind, text(output?.message) || "The agent rejected the request.", {
    detail: text(output?.detail) || (kind === "overloaded" ? `It responded with status ${response.status}.` : ""),
  });
};
