// The actor of one workspace agent: the only writer of its rows once the build has created them. Applies the agent's reports from both
// edges, stores its log lines, and notifies watchers and followers after the commit. Rejects reports that break a rule.

import { type Clock, toRfc3339 } from "#base/clock.ts";
import { invalidField, notFound } from "#base/errors.ts";
import { isUuid, NIL_UUID, uuid } from "#base/ids.ts";
import { nextTurn } from "#base/retry.ts";
import type { Topics } from "#base/topics.ts";
import {
  type AgentStatsRow,
  findAgent,
  findAgentFacts,
  listAgentsOfBuild,
  updateAgent,
  updateLogsLength,
} from "#db/agents/agents.ts";
import { listAgentApps } from "#db/agents/apps.ts";
import { insertLogSource, listLogSources, noteBatch, updateLogSource } from "#db/agents/log-sources.ts";
import { insertAgentLogs } from "#db/agents/logs.ts";
import { listAgentMetadata } from "#db/agents/metadata.ts";
import { listAgentScripts } from "#db/agents/scripts.ts";
import { deleteSubAgent, listSubAgents } from "#db/agents/sub-agents.ts";
import type { Statement } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";
import { findWorkspaceAccessRow } from "#db/workspaces/workspaces.ts";
import { type CreateLogSource, DEFAULT_SOURCE } from "#schema/agents/log-source.ts";
import type { AgentResources } from "#schema/agents/resources.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import { Actor, type Outcome } from "../runtime/actor.ts";
import type { Events } from "../runtime/events.ts";
import { Batcher, type Waiting } from "./batcher.ts";
import { applyReportedContext, type PushedContext } from "./context.ts";
import { isRepeatedBatch, type LogBatch, presentLines, toStoredLines } from "./log-lines.ts";
import { buildResourceNotices, mergeResources, type ResourcesReport } from "./resources.ts";
import type { AgentState, Decision } from "./state.ts";
import * as state from "./state.ts";
import {
  type AppRefusal,
  buildChildDotfiles,
  buildSubAgentApps,
  buildSubAgentInsert,
  checkSubAgent,
  type SubAgentInput,
} from "./sub-agents.ts";

export type AgentDeps = {
  store: Store;
  clock: Clock;
  topics: Topics<Events>;
  /** Bytes of log output that an agent may store in its lifetime; the setting `agent_log_limit`. */
  log_limit: number;
};

/** `overflow`: the whole batch was rejected, and every later one will be (facts/platform 4). */
export type AppendOutcome = "stored" | "overflow";

/** Maximum log sources of an agent: each is a row and stays in memory (rule LG-22). */
const MAX_SOURCES = 1000;

/** Maximum lines in one commit of an agent, unless a single batch has more: a commit should block the event loop for less than 2 ms. */
const MAX_GROUP_LINES = 1000;

export class AgentActor extends Actor<AgentState> {
  readonly #deps: AgentDeps;
  /** Set while batches wait. Idle agents don't need one. */
  #appends: Batcher<LogBatch, AppendOutcome> | undefined;

  constructor(id: string, deps: AgentDeps) {
    super(id, deps.store);
    this.#deps = deps;
  }

  protected toPart({ agent }: AgentState): number {
    return agent.part;
  }

  protected override toAffectedWorkspace({ agent }: AgentState): string {
    return agent.workspace_id;
  }

  protected override onUnconfirmedCommit(_: AgentState | undefined, found: AgentState | undefined): void {
    const { topics } = this.#deps;
    topics.publish("agent_logs_missed", this.id, {});
    topics.publish("agent_metadata", this.id, {});
    if (found) this.#announce(found);
  }

  protected override async load(): Promise<AgentState | undefined> {
    const { store } = this.#deps;
    const agent = await store.get(findAgentFacts({ id: this.id }));
    if (!agent) return undefined;
    const ids = { agent_id: this.id };
    const [sources, apps, scripts, metadata] = await Promise.all([
      store.all(listLogSources(ids)),
      store.all(listAgentApps(ids)),
      store.all(listAgentScripts(ids)),
      store.all(listAgentMetadata(ids)),
    ]);
    return {
      agent,
      sources: new Map(sources.map(({ id, key, last_batch }) => [id, { key, last_batch }])),
      apps: apps.map(({ id, slug, health, healthcheck_url }) => ({ id, slug, health, healthcheck_url })),
      scripts: scripts.map(({ id, status, exit_code }) => ({ id, status, exit_code })),
      metadata: metadata.map(({ key }) => ({ key })),
      connection: undefined,
    };
  }

  /**
   * Stores a whole batch of lines or none of it, and resolves when it is on disk. The lines get consecutive IDs. A retry with the ID of the
   * source's newest batch succeeds without storing it again. Rejects with 400 for an unknown source or a malformed time. Batches that wait
   * together share one message, one commit and one announcement to followers.
   */
  appendLogs(batch: LogBatch): Promise<AppendOutcome> {
    this.#appends ??= new Batcher<LogBatch, AppendOutcome>({
      cost: ({ logs }) => logs.length,
      maxCost: MAX_GROUP_LINES,
      run: (take) => this.#appendTurn(take),
      idle: () => {
        this.#appends = undefined;
      },
    });
    return this.#appends.add(batch);
  }

  /** Resolves when every earlier message has been stored and announced. */
  async settle(_: Record<string, never>): Promise<void> {
    await this.#appends?.whenDrained();
    return this.handle((now) => ({ state: now, reply: undefined }));
  }

  override async whenDrained(): Promise<void> {
    await this.#appends?.whenDrained();
    await super.whenDrained();
  }

  protected override canUnload(): boolean {
    return this.#appends === undefined;
  }

  /** The current connection is kept in memory only, never in the store. */
  protected override hasUnstoredState({ connection }: AgentState): boolean {
    return connection !== undefined;
  }

  /** Handles all batches that `take` returns as one message. A batch that breaks a rule is rejected alone. */
  #appendTurn(take: () => Waiting<LogBatch, AppendOutcome>[]): Promise<() => void> {
    return this.handle<() => void>(async (now) => {
      // Waits for batches that arrive in the same turn of the event loop, so that they join the group.
      await nextTurn();
      let next = now;
      const writes: Statement[] = [];
      const announcements: (() => void)[] = [];
      const answers: (() => void)[] = [];
      for (const { item, resolve, reject } of take()) {
        try {
          const outcome = await this.#append(next, item);
          next = outcome.state;
          writes.push(...(outcome.writes ?? []));
          if (outcome.after) announcements.push(outcome.after);
          answers.push(() => resolve(outcome.reply));
        } catch (error) {
          answers.push(() => reject(error));
        }
      }
      return {
        state: next,
        writes,
        after: () => {
          for (const announce of announcements) announce();
        },
        reply: () => {
          for (const answer of answers) answer();
        },
      };
    });
  }

  async #append(
    now: AgentState,
    { log_source_id, logs, batch_id }: LogBatch,
  ): Promise<Outcome<AgentState, AppendOutcome>> {
    const { store, clock, log_limit } = this.#deps;
    const { agent } = now;
    const source_id = toSourceId(log_source_id);
    const source = now.sources.get(source_id);
    if (!source && source_id !== DEFAULT_SOURCE.id) {
      throw invalidField("log_source_id", "is not a log source of this agent");
    }
    if (isRepeatedBatch(source?.last_batch, batch_id)) return { state: now, reply: "stored" };
    if (agent.logs_overflowed) return { state: now, reply: "overflow" };
    const { lines, bytes } = toStoredLines(logs, clock.now());
    const logs_length = agent.logs_length + bytes;
    if (logs_length > log_limit) return this.#overflow(now);
    const { sources, key, writes } = source
      ? { sources: now.sources, key: source.key, writes: [] }
      : await this.#newSource(now, source_id, DEFAULT_SOURCE);
    const first = await store.reserve("agent_logs", lines.length);
    const batch: Statement[] = [
      ...writes,
      updateLogsLength(this.id, logs_length),
      ...insertAgentLogs(first, agent.key, key, lines),
    ];
    if (batch_id !== undefined) batch.push(noteBatch({ key, batch_id }));
    return {
      state: {
        ...now,
        agent: { ...agent, logs_length },
        sources: batch_id === undefined ? sources : new Map(sources).set(source_id, { key, last_batch: batch_id }),
      },
      writes: batch,
      after: () => {
        const { topics } = this.#deps;
        if (topics.hasListeners("agent_logs", this.id)) {
          topics.publish("agent_logs", this.id, { logs: presentLines(lines, first, source_id) });
        }
        // An agent's first log lines change how its workspace is presented.
        if (agent.logs_length === 0 && bytes > 0) this.#announce(now);
      },
      reply: "stored",
    };
  }

  /** Creates a log source, or updates the name and icon of an existing one. Rejects with 400 at the limit. */
  createLogSource(source: CreateLogSource): Promise<void> {
    return this.handle<void>(async (now) => {
      const id = source.id.toLowerCase();
      const existing = now.sources.get(id);
      if (existing) {
        const { display_name = "", icon = "" } = source;
        const writes = [updateLogSource({ key: existing.key, display_name, icon })];
        return { state: now, writes, after: () => this.#announce(now), reply: undefined };
      }
      if (now.sources.size >= MAX_SOURCES) throw invalidField("id", `An agent has at most ${MAX_SOURCES} log sources.`);
      const { sources, writes } = await this.#newSource(now, id, source);
      return { state: { ...now, sources }, writes, after: () => this.#announce(now), reply: undefined };
    });
  }

  /** Makes a connection the agent's current one and closes the previous one (topic `agent_connection`). */
  connected(args: Omit<Parameters<typeof state.connected>[1], "now">): Promise<void> {
    return this.handle((now) => {
      const outcome = this.#toOutcome(state.connected(now, { ...args, now: this.#deps.clock.now() }));
      const { after } = outcome;
      return {
        ...outcome,
        after: () => {
          this.#deps.topics.publish("agent_connection", this.id, { connection_id: args.connection_id });
          after?.();
        },
      };
    });
  }

  heartbeat(args: Omit<Parameters<typeof state.heartbeat>[1], "now">): Promise<void> {
    return this.#report((now) => state.heartbeat(now, { ...args, now: this.#deps.clock.now() }));
  }

  disconnected(args: { connection_id: string }): Promise<void> {
    return this.#report((now) => state.disconnected(now, { ...args, now: this.#deps.clock.now() }));
  }

  reportLifecycle(args: Omit<Parameters<typeof state.lifecycle>[1], "now">): Promise<void> {
    return this.#report((now) => state.lifecycle(now, { ...args, now: this.#deps.clock.now() }));
  }

  reportStartup(args: Omit<Parameters<typeof state.startup>[1], "now">): Promise<void> {
    return this.#report((now) => state.startup(now, { ...args, now: this.#deps.clock.now() }));
  }

  reportAppHealth(args: Parameters<typeof state.appHealths>[1]): Promise<void> {
    return this.#report((now) => state.appHealths(now, args));
  }

  /** Makes the token with this digest the agent's only one, and closes what was opened with another one, except for the tunnel. */
  signIn(args: Omit<Parameters<typeof state.signIn>[1], "now">): Promise<void> {
    return this.#changeToken((now) => state.signIn(now, { ...args, now: this.#deps.clock.now() }));
  }

  /**
   * Makes the next token the agent's only one, and closes what was opened with the previous one, except for the tunnel. Deletes its
   * sub-agents other than `sub_agents`.
   */
  renewToken({
    sub_agents,
    ...args
  }: Omit<Parameters<typeof state.renewToken>[1], "now"> & { sub_agents: readonly string[] }): Promise<void> {
    return this.#changeToken((now) => state.renewToken(now, { ...args, now: this.#deps.clock.now() }), sub_agents);
  }

  /** `kept` are the sub-agents that stay; undefined means all. */
  #changeToken(decide: (now: AgentState) => Decision, kept?: readonly string[]): Promise<void> {
    return this.handle(async (now) => {
      const { store, topics } = this.#deps;
      const outcome = this.#toOutcome(decide(now));
      if (outcome.state === now) return outcome;
      const children = kept ? await store.all(listSubAgents({ parent_id: this.id })) : [];
      const deleted = children.filter(({ id }) => !kept?.includes(id));
      return {
        ...outcome,
        writes: [...(outcome.writes ?? []), ...deleted.flatMap(deleteSubAgent)],
        after: () => {
          topics.publish("agent_token_renewed", this.id, {});
          for (const { id } of deleted) topics.publish("agent_gone", id, {});
        },
      };
    });
  }

  /** Stores a status that an app reported. Rejects with 400 for an app that this agent does not have. */
  reportAppStatus(args: Omit<Parameters<typeof state.appStatus>[1], "id" | "now">): Promise<void> {
    return this.#report((now) => state.appStatus(now, { ...args, id: uuid(), now: this.#deps.clock.now() }));
  }

  reportMetadata(args: Omit<Parameters<typeof state.metadata>[1], "now">): Promise<void> {
    return this.handle((now) => ({
      ...this.#toOutcome(state.metadata(now, { ...args, now: this.#deps.clock.now() })),
      after: () => this.#deps.topics.publish("agent_metadata", this.id, {}),
    }));
  }

  /** Stores disk and memory figures, and notifies the workspace's owner when either has run out. */
  reportResources(report: ResourcesReport): Promise<void> {
    return this.#applyResources(() => report);
  }

  /** Records a container that was killed for exceeding its memory limit, which no daemon can report. Idempotent. */
  reportContainerKill(kill: ResourcesReport["memory_kills"][number]): Promise<void> {
    const isKnown = ({ memory_kills }: AgentResources): boolean =>
      memory_kills.some((one) => one.process === kill.process && one.killed_at === toRfc3339(kill.killed_at));
    return this.#applyResources((before) =>
      before && isKnown(before) ? undefined : { home: before?.home, memory: before?.memory, memory_kills: [kill] },
    );
  }

  #applyResources(buildReport: (before: AgentResources | null) => ResourcesReport | undefined): Promise<void> {
    return this.handle<void>(async (now) => {
      const { store, clock, topics } = this.#deps;
      const { agent } = now;
      const at = clock.now();
      const report = buildReport(agent.resources);
      if (!report) return { state: now, reply: undefined };
      const resources = mergeResources(agent.resources, report, at);
      const workspace = await store.get(findWorkspaceAccessRow({ id: agent.workspace_id }));
      const hasOwner = workspace !== undefined && workspace.owner_id !== PREBUILDS_USER_ID;
      const notices = hasOwner ? buildResourceNotices(workspace, agent.resources, resources, report, at) : [];
      return {
        state: { ...now, agent: { ...agent, resources } },
        writes: [updateAgent(this.id, { resources }, { expect: 1 }), ...notices],
        after: () => {
          this.#announce(now);
          if (hasOwner && notices.length > 0) topics.publish("notified", workspace.owner_id, {});
        },
        reply: undefined,
      };
    });
  }

  reportStats(args: Omit<AgentStatsRow, "agent_id" | "collected_at">): Promise<void> {
    return this.#report((now) => state.stats(now, { ...args, collected_at: this.#deps.clock.now() }));
  }

  /** Stores the context that the workspace provides to its chats. Resolves to false when the report is stale. */
  reportContext(args: PushedContext): Promise<boolean> {
    return this.handle(async (now) => {
      const { store, clock, topics } = this.#deps;
      const at = { agent_id: this.id, workspace_id: now.agent.workspace_id, now: clock.now() };
      const { accepted, writes, toggled } = await applyReportedContext(store, at, args);
      const announceDirty = (): void => {
        for (const { id, owner_id } of toggled) {
          topics.publish("owner_chats", owner_id, { kind: "context_dirty", chat_id: id });
        }
      };
      return { state: now, writes, after: announceDirty, reply: accepted };
    });
  }

  /** Creates an agent inside this one with its own token. Invalid apps are skipped and returned in `refused`. Rejects with 400 or 409. */
  createSubAgent(args: SubAgentInput & { id: string; token_hash: string }): Promise<{ refused: AppRefusal[] }> {
    return this.handle(async (now) => {
      const { store, clock } = this.#deps;
      const parent = await store.get(findAgent({ id: this.id }));
      if (!parent) throw notFound();
      checkSubAgent(args, await store.all(listAgentsOfBuild({ build_id: parent.build_id })), parent);
      const key = await store.reserve("agents", 1);
      const { id, token_hash } = args;
      const apps = buildSubAgentApps(args.apps, id, uuid);
      const created = { id, key, token_hash, now: clock.now() };
      return {
        state: now,
        writes: [buildSubAgentInsert(args, parent, created), ...(await this.#findDotfiles(created)), ...apps.writes],
        after: () => this.#announce(now),
        reply: { refused: apps.refused },
      };
    });
  }

  /** Returns the rows that make a nested agent install the same dotfiles. */
  async #findDotfiles({ id: agent_id, now }: { id: string; now: number }): Promise<Statement[]> {
    const { store } = this.#deps;
    const script = (await store.all(listAgentScripts({ agent_id: this.id }))).find(({ is_dotfiles }) => is_dotfiles);
    return script
      ? buildChildDotfiles(script, { agent_id, key: await store.reserve("log_sources", 1), now, uuid })
      : [];
  }

  /** Deletes a nested agent and everything that belongs to it. Rejects with 404 for any other agent. */
  deleteSubAgent({ id }: { id: string }): Promise<void> {
    return this.handle<void>(async (now) => {
      const children = await this.#deps.store.all(listSubAgents({ parent_id: this.id }));
      const child = children.find((one) => one.id === id);
      if (!child) throw notFound();
      return {
        state: now,
        writes: deleteSubAgent(child),
        after: () => {
          this.#deps.topics.publish("agent_gone", child.id, {});
          this.#announce(now);
        },
        reply: undefined,
      };
    });
  }

  reportScript(args: Parameters<typeof state.scriptCompleted>[1]): Promise<void> {
    return this.#report((now) => state.scriptCompleted(now, args));
  }

  #report(decide: (now: AgentState) => Decision): Promise<void> {
    return this.handle((now) => this.#toOutcome(decide(now)));
  }

  #toOutcome(decision: Decision): Outcome<AgentState, void> {
    return {
      state: decision.state,
      writes: decision.writes,
      after: decision.visible ? () => this.#announce(decision.state) : undefined,
      reply: undefined,
    };
  }

  /** Rejects this batch and every later one, and notifies watchers once. */
  #overflow(now: AgentState): Outcome<AgentState, AppendOutcome> {
    return {
      state: { ...now, agent: { ...now.agent, logs_overflowed: true } },
      writes: [updateAgent(this.id, { logs_overflowed: true }, { expect: 1 })],
      after: () => this.#announce(now),
      reply: "overflow",
    };
  }

  async #newSource(
    now: AgentState,
    id: string,
    { display_name = "", icon = "" }: { display_name?: string; icon?: string },
  ): Promise<{ sources: AgentState["sources"]; key: number; writes: readonly Statement[] }> {
    const key = await this.#deps.store.reserve("log_sources", 1);
    const row = { key, agent_id: this.id, id, display_name, icon, created_at: this.#deps.clock.now() };
    return { sources: new Map(now.sources).set(id, { key, last_batch: null }), key, writes: [insertLogSource(row)] };
  }

  #announce({ agent }: AgentState): void {
    this.#deps.topics.publish("workspace_changed", agent.workspace_id, { agent_id: this.id });
  }
}

const toSourceId = (given: string | undefined): string => {
  if (given === undefined || given === "" || given === NIL_UUID) return DEFAULT_SOURCE.id;
  if (!isUuid(given)) throw invalidField("log_source_id", "must be a UUID");
  return given.toLowerCase();
};
