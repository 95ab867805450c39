// Shuts down a workspace's agents gracefully before its provisioner removes their resources. Asks each daemon to run its stop scripts and
// exit, and waits for a limited time until it has disconnected (rules WK-26, WK-27). Agents without a Slipway daemon stay signed in until
// their provisioner ends them.
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { Topics } from "#base/topics.ts";
import { type AgentRow, findAgent, listRunningAgents } from "#db/agents/agents.ts";
import { listAgentScripts } from "#db/agents/scripts.ts";
import type { Store } from "#db/engine/store.ts";
import type { Report } from "#src/provisioners/provisioner.ts";
import type { AgentDialer, AgentHttp } from "#src/wire/index.ts";
import { agentStatus } from "../agent/status.ts";
import type { Events } from "../runtime/events.ts";

export type AgentShutdownDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly topics: Topics<Events>;
  readonly dialer: AgentDialer;
  readonly agentHttp: AgentHttp;
};

/** The time that a daemon may take after its scripts, to end leftover processes and deliver the output. */
const SHUTDOWN_GRACE_MS = 10_000;
/** The timeout of a stop script for which the template sets none (src/daemon/scripts/scripts.ts). */
const DEFAULT_SCRIPT_TIMEOUT_MS = 20_000;
/** Maximum time that stop scripts may delay a build, even if their timeouts are longer. */
const MAX_SHUTDOWN_MS = 5 * 60_000;
/** A daemon confirms a shutdown request immediately. */
const ANSWER_TIMEOUT_MS = 10_000;
const STAGE = "Shutting down";

/** Resolves when every agent has disconnected or taken too long, or when the signal aborts. Never rejects. */
export const shutDownAgents = async (
  deps: AgentShutdownDeps,
  workspace_id: string,
  report: Report,
  signal: AbortSignal,
): Promise<void> => {
  const agents = await deps.store.all(listRunningAgents({ workspace_id }));
  // Sub-agents end with their parents.
  const roots = agents.filter(({ parent_id }) => parent_id === null);
  await Promise.all(roots.map((agent) => shutDownAgent(deps, agent, report, signal)));
};

const shutDownAgent = async (deps: AgentShutdownDeps, agent: AgentRow, report: Report, signal: AbortSignal) => {
  const { clock, store, topics } = deps;
  if (agentStatus(agent, clock.now()) !== "connected") return;
  // After a restart of the server, a daemon that was asked to shut down may still be reconnecting.
  if (!deps.dialer.isDaemon(agent.id) && agent.lifecycle_state !== "shutting_down") return;
  const started_at = clock.now();
  const disconnected = new AbortController();
  const checkDisconnected = async (): Promise<void> => {
    const current = await store.get(findAgent({ id: agent.id }));
    if (!current || agentStatus(current, clock.now()) !== "connected") disconnected.abort();
  };
  const unsubscribe = topics.subscribe("workspace_changed", agent.workspace_id, ({ agent_id }) => {
    if (agent_id === agent.id) void checkDisconnected().catch(() => {});
  });
  try {
    const limitMs = await loadLimit(store, agent.id);
    report.log("info", STAGE, `The agent ${agent.name} runs its stop scripts and shuts down.`);
    if (!(await requestExit(deps, agent.id, signal))) return;
    await checkDisconnected();
    const hasDisconnected = await abortsWithin(clock, limitMs, disconnected.signal, signal);
    if (signal.aborted) return;
    if (!hasDisconnected)
      report.log("warn", STAGE, `The agent ${agent.name} did not shut down within ${limitMs / 1000} s.`);
    const timing = { action: "shutdown", resource: agent.name, source: "agent", stage: "apply" };
    report.timing({ ...timing, started_at, ended_at: clock.now() });
  } catch (error) {
    log("builds").warn("cannot shut down agent {agent_id} gracefully: {error}", { agent_id: agent.id, error });
  } finally {
    unsubscribe();
  }
};

/** Returns the milliseconds that the agent may take to shut down. */
const loadLimit = async (store: Store, agent_id: string): Promise<number> => {
  const scripts = await store.all(listAgentScripts({ agent_id }));
  const stopScripts = scripts.filter(({ run_on_stop }) => run_on_stop);
  const longestMs = Math.max(
    0,
    ...stopScripts.map(({ timeout_seconds }) => timeout_seconds * 1000 || DEFAULT_SCRIPT_TIMEOUT_MS),
  );
  return Math.min(MAX_SHUTDOWN_MS, longestMs) + SHUTDOWN_GRACE_MS;
};

/** Asks the daemon to exit. Returns false if it does not accept the request, so that the provisioner must end it. */
const requestExit = async ({ agentHttp, clock }: AgentShutdownDeps, agent_id: string, signal: AbortSignal) => {
  const timeout = new AbortController();
  const timer = clock.after(ANSWER_TIMEOUT_MS, () => timeout.abort());
  try {
    const path = "/api/v0/shutdown";
    const anySignal = AbortSignal.any([timeout.signal, signal]);
    const response = await agentHttp.request(agent_id, { method: "POST", path, signal: anySignal });
    await response.discard();
    return response.status < 300;
  } catch (error) {
    log("builds").debug("cannot ask agent {agent_id} to shut down: {error}", { agent_id, error });
    return false;
  } finally {
    timer.cancel();
  }
};

/** Resolves with true when `awaited` aborts, or with false after `ms` milliseconds or when `cancel` aborts. */
const abortsWithin = (clock: Clock, ms: number, awaited: AbortSignal, cancel: AbortSignal): Promise<boolean> =>
  new Promise((resolve) => {
    const finish = (): void => {
      timer.cancel();
      awaited.removeEventListener("abort", finish);
      cancel.removeEventListener("abort", finish);
      resolve(awaited.aborted);
    };
    const timer = clock.after(ms, finish);
    awaited.addEventListener("abort", finish);
    cancel.addEventListener("abort", finish);
    if (awaited.aborted || cancel.aborted) finish();
  });
