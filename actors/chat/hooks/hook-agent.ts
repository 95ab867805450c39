// Asks the workspace's daemon for the hooks that the workspace declares, and has it run them. The daemon's answers are untrusted, so they
// are validated and limited in time and size. Used by workspace-hooks.ts, outside of the mailbox.
import { Value } from "@sinclair/typebox/value";
import type { Clock } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import { pause } from "#base/retry.ts";
import { listAgentsOfBuild } from "#db/agents/agents.ts";
import type { Store } from "#db/engine/store.ts";
import { findWorkspace } from "#db/workspaces/workspaces.ts";
import { DeclaredHooks, HookRun } from "#schema/agents/workspace-hooks.ts";
import { DEFAULT_LIMITS, Slots } from "#src/hooks/dispatch-slots.ts";
import { AnswerProblem, type FailureClass, type HookRequest } from "#src/hooks/protocol.ts";
import { SecretMask } from "#src/tools/mask.ts";
import type { ToolServices, ToolServicesFor } from "#src/tools/services.ts";
import type { AgentHttp } from "#src/wire/index.ts";

/** Timeout of one request for the declared hooks. */
const LIST_TIMEOUT_MS = 3_000;
/** How long a tool call waits for a workspace agent to reconnect. */
const RECONNECT_TIMEOUT_MS = 5_000;
const RETRY_INTERVAL_MS = 200;
/** Timeout of one run. Longer than the daemon's own limit, so that the daemon reports a timeout first. */
export const RUN_TIMEOUT_MS = 7_000;
const MAX_ANSWER_BYTES = 256 * 1024;

export type HookAgentDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly agentHttp: AgentHttp;
  readonly toolServices: (scope: ToolServicesFor) => Pick<ToolServices, "canUseWorkspace" | "loadSecrets">;
};

/** Why a hook of a workspace failed. `failure` is recorded; people and models read the message. */
export class HookProblem extends Error {
  readonly failure: FailureClass;
  constructor(failure: FailureClass, message: string) {
    super(message);
    this.failure = failure;
  }
}

export class HookAgent {
  readonly #deps: HookAgentDeps;
  readonly #slots: Slots;

  constructor(deps: HookAgentDeps) {
    this.#deps = deps;
    this.#slots = new Slots(deps.clock, DEFAULT_LIMITS);
  }

  /** Runs a hook and returns the output of its program. Throws `HookProblem`, `AppError` or the reason of `signal`. */
  async run(
    { agent_id, revision, name, timeout_ms }: { agent_id: string; revision: string; name: string; timeout_ms: number },
    request: string,
    signal: AbortSignal | undefined,
  ): Promise<Uint8Array> {
    if (timeout_ms <= 0) throw new HookProblem("timeout", "earlier hooks used up the time limit");
    const release = await this.#slots.acquire("turn");
    if (!release) throw new HookProblem("over_capacity", "too many hooks run concurrently");
    try {
      const post = { method: "POST", path: "/api/v0/hooks/run", json: { revision, name, request } } as const;
      const run = await this.#request(agent_id, post, timeout_ms, signal);
      if (!Value.Check(HookRun, run)) throw new HookProblem("protocol_error", "the agent gave no valid answer");
      const { outcome, exit_code, output } = run;
      if (outcome === "timeout") throw new HookProblem("timeout", "it did not end in time");
      if (outcome === "too_long") throw new HookProblem("protocol_error", "its output is larger than 64 KiB");
      if (outcome === "failed") throw new HookProblem("program_failed", `it exited with code ${exit_code}`);
      return Buffer.from(output, "base64");
    } finally {
      release();
    }
  }

  /** Returns the declared hooks. With `waits`, waits until a disconnected agent has reconnected. */
  async listHooks(agent_id: string, waits: boolean, signal: AbortSignal | undefined): Promise<DeclaredHooks> {
    const { clock } = this.#deps;
    const deadline = clock.monotonic() + (waits ? RECONNECT_TIMEOUT_MS : 0);
    const get = { method: "GET", path: "/api/v0/hooks" } as const;
    for (;;) {
      try {
        const declared = await this.#request(agent_id, get, LIST_TIMEOUT_MS, signal);
        if (declared === undefined) return { revision: "", error: "", hooks: [] };
        if (!Value.Check(DeclaredHooks, declared))
          throw new HookProblem("protocol_error", "the agent returned an unexpected response");
        return declared;
      } catch (error) {
        signal?.throwIfAborted();
        const isUnreachable =
          error instanceof AppError || (error instanceof HookProblem && error.failure === "timeout");
        if (!isUnreachable || clock.monotonic() >= deadline) throw error;
      }
      await pause(clock, RETRY_INTERVAL_MS, signal);
    }
  }

  /** Returns the JSON of a successful answer. Returns undefined from a daemon that is too old to have hooks. */
  async #request(
    agent_id: string,
    request: { readonly method: "GET" | "POST"; readonly path: string; readonly json?: unknown },
    timeout_ms: number,
    signal: AbortSignal | undefined,
  ): Promise<unknown> {
    const timeout = new AbortController();
    const timer = this.#deps.clock.after(timeout_ms, () => timeout.abort());
    try {
      const response = await this.#deps.agentHttp.request(agent_id, {
        ...request,
        signal: signal ? AbortSignal.any([timeout.signal, signal]) : timeout.signal,
      });
      const body = await response.json<unknown>(MAX_ANSWER_BYTES);
      if (response.status === 404 && request.method === "GET") return undefined;
      if (response.status === 429) throw new HookProblem("over_capacity", "the agent runs too many hooks");
      if (response.status >= 400) throw new HookProblem("protocol_error", `the agent answered ${response.status}`);
      return body;
    } catch (error) {
      if (timeout.signal.aborted && !signal?.aborted) throw new HookProblem("timeout", "the agent does not answer");
      throw error;
    } finally {
      timer.cancel();
    }
  }

  /** Returns the first agent of the chat's workspace, if the chat's owner may use the workspace and the workspace is running. */
  async find({ meta }: HookRequest): Promise<{ agent_id: string; loadMask: () => Promise<SecretMask> } | undefined> {
    const { store, toolServices } = this.#deps;
    const { workspace_id = null, chat_id, owner_id } = meta;
    const workspace = workspace_id === null ? undefined : await store.get(findWorkspace({ id: workspace_id }));
    if (!workspace || workspace.deleted || workspace.dormant_at !== null) return undefined;
    const scope = { chat_id, owner_id, organization_id: workspace.organization_id, workspace_id, run_id: "" };
    const services = toolServices(scope);
    if (!(await services.canUseWorkspace())) return undefined;
    const agents = await store.all(listAgentsOfBuild({ build_id: workspace.latest_build_id }));
    const agent_id = agents.find(({ parent_id }) => parent_id === null)?.id;
    return agent_id === undefined
      ? undefined
      : { agent_id, loadMask: async () => new SecretMask(await services.loadSecrets()) };
  }
}

/** Returns whether the hook or its workspace has failed, rather than the server. */
export const isProblem = (error: unknown): boolean =>
  error instanceof HookProblem || error instanceof AnswerProblem || error instanceof AppError;

export const toProblem = (error: unknown): HookProblem => {
  if (error instanceof HookProblem) return error;
  if (error instanceof AnswerProblem) return new HookProblem("protocol_error", error.message);
  return new HookProblem("connection_failed", error instanceof Error ? error.message : String(error));
};
