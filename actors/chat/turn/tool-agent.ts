// Connects a chat's tools to its workspace: sends requests to the daemon of a workspace agent, and explains why it cannot be reached.
// Idempotent requests wait for an agent that has just disconnected (rules TO-6, TO-8).
import type { Clock } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import { pause } from "#base/retry.ts";
import { AnswerMemory, LARGE_ANSWER_BYTES } from "#base/system/answer-memory.ts";
import type { MemoryShare } from "#base/system/memory-share.ts";
import { listAgentsOfBuild } from "#db/agents/agents.ts";
import { findChatAccessRow } from "#db/chats/chats.ts";
import type { Store } from "#db/engine/store.ts";
import { findWorkspace } from "#db/workspaces/workspaces.ts";
import { CHAT_HEADER } from "#schema/agents/git-message.ts";
import type { ToolServices, ToolServicesFor } from "#src/tools/services.ts";
import type { Skills } from "#src/tools/skills/skills.ts";
import type { Subagents } from "#src/tools/subagents/agents.ts";
import {
  type AgentCall,
  type ToolAgent,
  ToolError,
  WorkspaceStoppedError,
  WorkspaceUnreachableError,
} from "#src/tools/tool.ts";
import { type AgentHttp, type HttpResponse, WireError } from "#src/wire/index.ts";
import type { SubagentsOf } from "../subagents/subagents.ts";
import { findChosenAgent, formatUnknownAgent } from "./agent-choice.ts";

/** How long a request waits for a daemon to reconnect. */
const RECONNECT_TIMEOUT_MS = 15_000;
const RETRY_INTERVAL_MS = 200;
/** How long after its start a server expects daemons to reconnect. */
const STARTUP_RECONNECT_MS = 30_000;
/** Exceeds the time for which the daemon holds any request open. */
const ANSWER_TIMEOUT_MS = 60_000;
/** Extra time for requests with their own timeout, so that the daemon can report it. */
const ANSWER_GRACE_MS = 10_000;
/** Workspace statuses in which a call may start the workspace. */
const WAKEABLE_STATUSES: ReadonlySet<string> = new Set(["stopped", "stopping", "pending", "starting"]);
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

export type AgentDeps = {
  /** The memory for requests to models and for large results. */
  readonly memory: MemoryShare;
  readonly store: Store;
  readonly clock: Clock;
  readonly agentHttp: AgentHttp;
  readonly toolServices: (scope: ToolServicesFor) => ToolServices;
  readonly skills: (chat: { readonly chat_key: number; readonly owner_id: string }) => Skills;
  readonly subagents: (scope: SubagentsOf) => Subagents;
  /** When this server started. A daemon that was connected before may still be reconnecting. */
  readonly opened_at?: number | undefined;
};

/** Dependencies for reaching a workspace. */
export type ReachDeps = Pick<AgentDeps, "memory" | "store" | "clock" | "agentHttp" | "toolServices" | "opened_at">;

export type AgentOptions = {
  /** The agent's name; defaults to the workspace's first agent. */
  readonly name?: string | undefined;
  /** Set if a call starts a stopped workspace (rule WO-9). Aborts the wait for the start. */
  readonly wakeSignal?: AbortSignal;
  /** The memory for large answers. By default, each request has its own. */
  readonly memory?: AnswerMemory;
};

export class WorkspaceAgent implements ToolAgent {
  readonly #deps: ReachDeps;
  readonly #workspace_id: string | null;
  readonly #services: ToolServices;
  readonly #chat_id: string;
  readonly #owner_id: string;
  readonly #name: string | undefined;
  readonly #wakeSignal: AbortSignal | undefined;
  readonly #memory: AnswerMemory | undefined;
  /** The value of the header that names the chat. */
  #chatHeader: Promise<string> | undefined;
  /** Whether the agent was connected recently, so that a disconnected one will probably reconnect. */
  #wasConnected: boolean;
  /** Whether the workspace was running. If it stops after that, someone has stopped it on purpose, and calls do not start it again. */
  #wasRunning = false;

  constructor(
    deps: ReachDeps,
    scope: ToolServicesFor,
    wasConnected: boolean,
    { name, wakeSignal, memory }: AgentOptions = {},
  ) {
    this.#memory = memory;
    this.#name = name;
    this.#wakeSignal = wakeSignal;
    this.#deps = deps;
    this.#workspace_id = scope.workspace_id;
    this.#services = deps.toolServices(scope);
    this.#chat_id = scope.chat_id;
    this.#owner_id = scope.owner_id;
    this.#wasConnected = wasConnected;
  }

  call<T>(call: AgentCall): Promise<T> {
    return this.#call<T>(call, (response) => response.json<T>(MAX_ANSWER_BYTES));
  }

  bytes(path: string, maxBytes: number, signal: AbortSignal): Promise<Uint8Array> {
    return this.#call<Uint8Array>({ method: "GET", path, signal, patient: true }, (response) =>
      response.bytes(maxBytes),
    );
  }

  /** Returns the agent's ID. Rejects with `ToolError` when there is no agent. */
  id(): Promise<string> {
    return this.#requireAgent();
  }

  async #call<T>(call: AgentCall, read: Read<T>): Promise<T> {
    const { clock } = this.#deps;
    const deadline = clock.monotonic() + RECONNECT_TIMEOUT_MS;
    for (;;) {
      try {
        const answer = await this.#callOnce<T>(call, read);
        this.#wasConnected = true;
        return answer;
      } catch (error) {
        if (call.signal?.aborted) throw call.signal.reason;
        if (!(error instanceof AppError)) throw error;
        const canRetry = call.patient && this.#wasConnected && clock.monotonic() < deadline;
        if (!canRetry) {
          const restoreHint = await this.#services.describeRestore();
          throw new WorkspaceUnreachableError(`The workspace cannot be reached. ${error.message} ${restoreHint}`);
        }
      }
      await pause(clock, RETRY_INTERVAL_MS);
    }
  }

  async #callOnce<T>({ method, path, json, body, signal, answer_ms = 0, ends }: AgentCall, read: Read<T>): Promise<T> {
    const { agentHttp, clock, memory: share } = this.#deps;
    const agent_id = await this.#requireAgent(ends);
    this.#chatHeader ??= this.#buildChatHeader();
    const headers: [string, string][] = [[CHAT_HEADER, await this.#chatHeader]];
    const timeout = new AbortController();
    const timer = clock.after(Math.max(ANSWER_TIMEOUT_MS, answer_ms + ANSWER_GRACE_MS), () => timeout.abort());
    const eitherSignal = signal ? AbortSignal.any([signal, timeout.signal]) : timeout.signal;
    using ownMemory = new AnswerMemory({ clock, share, holder: this.#owner_id, signal: eitherSignal });
    const memory = this.#memory ?? ownMemory;
    try {
      const response = await agentHttp.request(agent_id, {
        method,
        path: `/api/v0${path}`,
        json,
        headers,
        ...(body ? { body } : {}),
        signal: eitherSignal,
      });
      response.reserve = { above: LARGE_ANSWER_BYTES, wait: () => memory.reserve(() => timeout.abort()) };
      if (response.status < 400) return await read(response);
      throw new ToolError(formatRefusal(response.status, path, await response.json<Refusal>(MAX_ANSWER_BYTES)));
    } catch (error) {
      throw timeout.signal.aborted ? new WireError("timeout", "The agent is not responding.") : error;
    } finally {
      timer.cancel();
    }
  }

  /** Returns the IDs of the chat and its parent, because a sub-chat's changes also belong to its root chat. */
  async #buildChatHeader(): Promise<string> {
    const chat = await this.#deps.store.get(findChatAccessRow({ id: this.#chat_id }));
    return [this.#chat_id, ...(chat?.parent_chat_id ? [chat.parent_chat_id] : [])].join(",");
  }

  /** Returns the ID of the chosen agent, and starts the workspace if necessary. Throws `ToolError` when there is no agent to wait for. */
  async #requireAgent(ends = false): Promise<string> {
    const { store } = this.#deps;
    if (this.#workspace_id === null) throw new ToolError("This chat is not bound to a workspace.");
    let workspace = await store.get(findWorkspace({ id: this.#workspace_id }));
    if (!workspace || workspace.deleted) throw new ToolError("The workspace was deleted.");
    if (workspace.dormant_at !== null) throw new ToolError("The workspace is dormant. Wake it up first.");
    if (!ends && !(await this.#services.canUseWorkspace()))
      throw new ToolError("The chat's owner may no longer use the workspace.");
    let agents = await store.all(listAgentsOfBuild({ build_id: workspace.latest_build_id }));
    if (this.#wakeSignal && !this.#wasRunning && agents.length === 0 && WAKEABLE_STATUSES.has(workspace.status)) {
      await this.#services.wakeWorkspace(this.#wakeSignal);
      workspace = (await store.get(findWorkspace({ id: workspace.id }))) ?? workspace;
      agents = await store.all(listAgentsOfBuild({ build_id: workspace.latest_build_id }));
    }
    const agent = findChosenAgent(agents, this.#name);
    if (!agent && this.#name !== undefined && agents.length > 0)
      throw new ToolError(formatUnknownAgent(agents, this.#name));
    if (agent) {
      this.#wasRunning = true;
      this.#wasConnected ||= this.#wasConnectedBeforeStart(agent.last_connected_at);
      return agent.id;
    }
    throw new WorkspaceStoppedError(`The workspace is not running: it is ${workspace.status}.`);
  }

  /** Returns whether this server has just started and the agent was connected to the previous server process. */
  #wasConnectedBeforeStart(last_connected_at: number | null): boolean {
    const { clock, opened_at } = this.#deps;
    if (opened_at === undefined || last_connected_at === null) return false;
    return last_connected_at < opened_at && clock.now() - opened_at < STARTUP_RECONNECT_MS;
  }
}

type Read<T> = (response: HttpResponse) => Promise<T>;
/** The body of an error response of the daemon. */
type Refusal = { message?: string; detail?: string; validations?: { field: string; detail: string }[] };

const formatRefusal = (
  status: number,
  path: string,
  { message = "", detail = "", validations = [] }: Refusal,
): string => {
  if (status === 404 && path.startsWith("/processes/")) {
    return "No process has this id. The workspace may have been restarted since.";
  }
  const fields = validations.map((one) => `${one.field} ${one.detail}`).join("; ");
  return [message, fields, detail].filter((text) => text !== "").join(" ") || `The agent answered ${status}.`;
};
