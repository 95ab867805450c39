// The workspace of a chat as its tools know it: requests to the daemon of the agent that lives there now. Says in words why it cannot be
// reached; what may be asked twice waits a while for an agent that was there a moment ago (rules TO-6, TO-8).
import type { Clock } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import { pause } from "#base/retry.ts";
import { listAgentsOfBuild } from "#db/agents/agents.ts";
import { findChatPlace } from "#db/chats/chats.ts";
import type { Store } from "#db/engine/store.ts";
import { findWorkspace } from "#db/workspaces/workspaces.ts";
import { CHAT_HEADER } from "#schema/agents/git-message.ts";
import type { ServicesOf, ToolServices } from "#src/tools/services.ts";
import type { Skills } from "#src/tools/skills/skills.ts";
import type { Subagents } from "#src/tools/subagents/agents.ts";
import { type AgentCall, type ToolAgent, ToolError, WorkspaceAway, WorkspaceStopped } from "#src/tools/tool.ts";
import { type AgentHttp, type HttpResponse, WireError } from "#src/wire/index.ts";
import type { SubagentsOf } from "../subagents/subagents.ts";
import { chosenAgent, noSuchAgent } from "./agent-choice.ts";

/** A server that was just started, or a daemon that has lost its connection, is back by then or has a real trouble. */
const PATIENCE_MS = 15_000;
const AGAIN_MS = 200;
/** So long after its start a server expects daemons to return. */
const RETURN_MS = 30_000;
/** Longer than any request waits for news. */
const ANSWER_MS = 60_000;
/** What has a limit of its own says that it has passed. */
const ANSWER_SPARE_MS = 10_000;
/** Statuses of a workspace that a call is worth waiting for. */
const MAY_WAKE: ReadonlySet<string> = new Set(["stopped", "stopping", "pending", "starting"]);
/** Bytes of one answer. */
const MOST = 16 * 1024 * 1024;

export type AgentDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly agentHttp: AgentHttp;
  readonly toolServices: (of: ServicesOf) => ToolServices;
  readonly skills: (of: { readonly chat_key: number; readonly owner_id: string }) => Skills;
  readonly subagents: (of: SubagentsOf) => Subagents;
  /** When this server began: a daemon that was last heard before that may not be back yet. */
  readonly opened_at?: number | undefined;
};

/** What it takes to reach a workspace. */
export type ReachDeps = Pick<AgentDeps, "store" | "clock" | "agentHttp" | "toolServices" | "opened_at">;

export type AgentOptions = {
  /** Of the agent; the workspace's first one when absent. */
  readonly name?: string | undefined;
  /** Given where a call starts a stopped workspace (rule WO-9); ends the waiting for it. */
  readonly wakes?: AbortSignal;
};

export class WorkspaceAgent implements ToolAgent {
  readonly #deps: ReachDeps;
  readonly #workspace_id: string | null;
  readonly #services: ToolServices;
  readonly #chat_id: string;
  #chats: Promise<string> | undefined;
  /** It has been there before. */
  #known: boolean;

  readonly #name: string | undefined;
  readonly #wakes: AbortSignal | undefined;
  /** A workspace that stops during a call was stopped on purpose. */
  #isReached = false;

  constructor(deps: ReachDeps, of: ServicesOf, known: boolean, { name, wakes }: AgentOptions = {}) {
    this.#name = name;
    this.#wakes = wakes;
    this.#deps = deps;
    this.#workspace_id = of.workspace_id;
    this.#services = deps.toolServices(of);
    this.#chat_id = of.chat_id;
    this.#known = known;
  }

  call<T>(call: AgentCall): Promise<T> {
    return this.#call<T>(call, (response) => response.json<T>(MOST));
  }

  bytes(path: string, most: number, signal: AbortSignal): Promise<Uint8Array> {
    return this.#call<Uint8Array>({ method: "GET", path, signal, patient: true }, (response) => response.bytes(most));
  }

  /** Returns the agent's id. Throws `ToolError` when none exists. */
  id(): Promise<string> {
    return this.#agent();
  }

  async #call<T>(call: AgentCall, read: Read<T>): Promise<T> {
    const { clock } = this.#deps;
    const until = clock.monotonic() + PATIENCE_MS;
    for (;;) {
      try {
        const answer = await this.#once<T>(call, read);
        this.#known = true;
        return answer;
      } catch (error) {
        if (call.signal?.aborted) throw call.signal.reason;
        if (!(error instanceof AppError)) throw error;
        const mayWait = call.patient && this.#known && clock.monotonic() < until;
        if (!mayWait) {
          const wayBack = await this.#services.wayBack();
          throw new WorkspaceAway(`The workspace cannot be reached. ${error.message} ${wayBack}`);
        }
      }
      await pause(clock, AGAIN_MS);
    }
  }

  async #once<T>({ method, path, json, body, signal, answer_ms = 0, ends }: AgentCall, read: Read<T>): Promise<T> {
    const { agentHttp, clock } = this.#deps;
    const agent_id = await this.#agent(ends);
    this.#chats ??= this.#family();
    const headers: [string, string][] = [[CHAT_HEADER, await this.#chats]];
    const silence = new AbortController();
    const limit = clock.after(Math.max(ANSWER_MS, answer_ms + ANSWER_SPARE_MS), () => silence.abort());
    try {
      const response = await agentHttp.request(agent_id, {
        method,
        path: `/api/v0${path}`,
        json,
        headers,
        ...(body ? { body } : {}),
        signal: signal ? AbortSignal.any([signal, silence.signal]) : silence.signal,
      });
      if (response.status < 400) return await read(response);
      throw new ToolError(formatRefusal(response.status, path, await response.json<Refusal>(MOST)));
    } catch (error) {
      throw silence.signal.aborted ? new WireError("timeout", "The agent is not responding.") : error;
    } finally {
      limit.cancel();
    }
  }

  /** In whose name the daemon is asked: what a sub-chat works on is its root's work, too. */
  async #family(): Promise<string> {
    const place = await this.#deps.store.get(findChatPlace({ id: this.#chat_id }));
    return [this.#chat_id, ...(place?.parent_chat_id ? [place.parent_chat_id] : [])].join(",");
  }

  /** The agent in the latest build. Throws `ToolError` when none exists: waiting would not help. */
  async #agent(ends = false): Promise<string> {
    const { store } = this.#deps;
    if (this.#workspace_id === null) throw new ToolError("This chat is not bound to a workspace.");
    let workspace = await store.get(findWorkspace({ id: this.#workspace_id }));
    if (!workspace || workspace.deleted) throw new ToolError("The workspace was deleted.");
    if (workspace.dormant_at !== null) throw new ToolError("The workspace is dormant. Wake it up first.");
    if (!ends && !(await this.#services.mayUseWorkspace()))
      throw new ToolError("The chat's owner may no longer use the workspace.");
    let agents = await store.all(listAgentsOfBuild({ build_id: workspace.latest_build_id }));
    if (this.#wakes && !this.#isReached && agents.length === 0 && MAY_WAKE.has(workspace.status)) {
      await this.#services.wakeWorkspace(this.#wakes);
      workspace = (await store.get(findWorkspace({ id: workspace.id }))) ?? workspace;
      agents = await store.all(listAgentsOfBuild({ build_id: workspace.latest_build_id }));
    }
    const agent = chosenAgent(agents, this.#name);
    if (!agent && this.#name !== undefined && agents.length > 0) throw new ToolError(noSuchAgent(agents, this.#name));
    if (agent) {
      this.#isReached = true;
      this.#known ||= this.#isExpected(agent.last_connected_at);
      return agent.id;
    }
    throw new WorkspaceStopped(`The workspace does not run: it is ${workspace.status}.`);
  }

  /** It was there for the server before this one, which has just begun. */
  #isExpected(last_connected_at: number | null): boolean {
    const { clock, opened_at } = this.#deps;
    if (opened_at === undefined || last_connected_at === null) return false;
    return last_connected_at < opened_at && clock.now() - opened_at < RETURN_MS;
  }
}

type Read<T> = (response: HttpResponse) => Promise<T>;
type Refusal = { message?: string; detail?: string; validations?: { field: string; detail: string }[] };

const formatRefusal = (
  status: number,
  path: string,
  { message = "", detail = "", validations = [] }: Refusal,
): string => {
  if (status === 404 && path.startsWith("/processes/")) {
    return "There is no process of this id; the workspace may have been restarted since.";
  }
  const fields = validations.map((one) => `${one.field} ${one.detail}`).join("; ");
  return [message, fields, detail].filter((words) => words !== "").join(" ") || `The agent answered ${status}.`;
};
