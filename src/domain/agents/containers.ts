// Queries a daemon about the containers of its workspace and passes on its errors (facts/platform 3.7). Used by the routes of containers
// and devcontainers. The daemon's responses are untrusted: their size is limited and they are validated.

import { Value } from "@sinclair/typebox/value";
import { AppError, type ErrorKind, STATUS } from "#base/errors.ts";
import { parseJson } from "#base/json/read.ts";
import { nullableUuid } from "#schema/nullable-uuid.ts";
import { type ContainerListing, FoundContainers } from "#schema/workspaces/container.ts";
import { type AnswerReserve, type HttpResponse, toWireProblem, WireError } from "#src/wire/index.ts";
import type { DomainContext } from "../context.ts";
import { makeTimeout } from "./secrets-change.ts";

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

type DaemonRequest = {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly json?: unknown;
};

/** Returns what `read` returns for a response with an accepted status. Throws 408 on a timeout, and the agent's own error. */
export const requestDaemon = async <T>(
  { agentHttp, clock }: Deps,
  agent_id: string,
  requested: DaemonRequest,
  isAccepted: (status: number) => boolean,
  read: (response: HttpResponse) => T | Promise<T>,
): Promise<T> => {
  const timeout = makeTimeout(clock, TIMEOUT_MS);
  try {
    const response = await agentHttp.request(agent_id, { ...requested, signal: timeout.signal });
    if (!isAccepted(response.status)) throw await toAgentError(response);
    return await read(response);
  } catch (error) {
    if (!timeout.signal.aborted) throw error;
    throw new AppError("timeout", "The agent did not answer within 30 s.");
  } finally {
    timeout.cancel();
  }
};

const isSuccess = (status: number): boolean => status >= 200 && status <= 299;

/** Returns the body of a successful response. Throws like `requestDaemon`. */
export const requestContainers = (
  ctx: Deps,
  agent_id: string,
  { method, rest, reserve }: ContainersRequest,
): Promise<string> =>
  requestDaemon(ctx, agent_id, { method, path: `/api/v0/containers${rest}` }, isSuccess, (response) => {
    response.reserve = reserve;
    return response.text(MAX_LISTING);
  });

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
export const toAgentError = async (response: HttpResponse): Promise<AppError> => {
  const kind = KINDS.get(response.status) ?? "overloaded";
  const output = await response.json<{ message?: unknown; detail?: unknown }>(MAX_ERROR_BYTES).catch(() => undefined);
  const text = (value: unknown): string => (typeof value === "string" ? value.slice(0, 2_000) : "");
  return new AppError(kind, text(output?.message) || "The agent rejected the request.", {
    detail: text(output?.detail) || (kind === "overloaded" ? `It responded with status ${response.status}.` : ""),
  });
};
