// Lets the agents of a workspace end in order before its provisioner takes away what they run on: asks each daemon to end, which then
// runs its stop scripts and reports, and waits until it has gone, for a bounded time (rules WK-26, WK-27). Daemons that cannot be asked
// (genuine agents) are told by their provisioner, and stay signed in in the meantime.
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

/** What a daemon needs alongside its scripts: ending what they left, and delivering what they said. */
const AROUND_MS = 10_000;
/** A stop script without a timeout of its own has this long (src/daemon/scripts/scripts.ts). */
const SCRIPT_MS = 20_000;
/** No stop script holds up a build for longer, whatever timeout it has. */
const MAX_SHUTDOWN_MS = 5 * 60_000;
/** A daemon answers immediately that it ends. */
const ANSWER_MS = 10_000;
const STAGE = "Shutting down";

/** Resolves when every agent of the workspace has gone, does not have to be waited for, or the signal fires; never rejects. */
export const shutDownAgents = async (
  deps: AgentShutdownDeps,
  workspace_id: string,
  report: Report,
  signal: AbortSignal,
): Promise<void> => {
  const agents = await deps.store.all(listRunningAgents({ workspace_id }));
  // Agents inside agents end with theirs.
  const roots = agents.filter(({ parent_id }) => parent_id === null);
  await Promise.all(roots.map((agent) => shutDown(deps, agent, report, signal)));
};

const shutDown = async (deps: AgentShutdownDeps, agent: AgentRow, report: Report, signal: AbortSignal) => {
  const { clock, store, topics } = deps;
  if (agentStatus(agent, clock.now()) !== "connected") return;
  // One that was asked before a restart of the server is on its way back.
  if (!deps.dialer.isDaemon(agent.id) && agent.lifecycle_state !== "shutting_down") return;
  const started_at = clock.now();
  const gone = new AbortController();
  const look = async (): Promise<void> => {
    const now = await store.get(findAgent({ id: agent.id }));
    if (!now || agentStatus(now, clock.now()) !== "connected") gone.abort();
  };
  const unsubscribe = topics.subscribe("workspace_changed", agent.workspace_id, ({ agent_id }) => {
    if (agent_id === agent.id) void look().catch(() => {});
  });
  try {
    const bound = await loadLimit(store, agent.id);
    report.log("info", STAGE, `The agent ${agent.name} runs its stop scripts and ends.`);
    if (!(await askToEnd(deps, agent.id, signal))) return;
    await look();
    const ended = await firedWithin(clock, bound, gone.signal, signal);
    if (signal.aborted) return;
    if (!ended) report.log("warn", STAGE, `The agent ${agent.name} has not ended within ${bound / 1000} s.`);
    const timing = { action: "shutdown", resource: agent.name, source: "agent", stage: "apply" };
    report.timing({ ...timing, started_at, ended_at: clock.now() });
  } catch (error) {
    log("builds").warn("agent {agent_id} could not be ended in order: {error}", { agent_id: agent.id, error });
  } finally {
    unsubscribe();
  }
};

/** Milliseconds that the agent may take: its longest stop script, and what is around it. */
const loadLimit = async (store: Store, agent_id: string): Promise<number> => {
  const scripts = await store.all(listAgentScripts({ agent_id }));
  const stops = scripts.filter(({ run_on_stop }) => run_on_stop);
  const longest = Math.max(0, ...stops.map(({ timeout_seconds }) => timeout_seconds * 1000 || SCRIPT_MS));
  return Math.min(MAX_SHUTDOWN_MS, longest) + AROUND_MS;
};

/** False when the daemon cannot be asked: its provisioner then tells it. */
const askToEnd = async ({ agentHttp, clock }: AgentShutdownDeps, agent_id: string, signal: AbortSignal) => {
  const late = new AbortController();
  const timer = clock.after(ANSWER_MS, () => late.abort());
  try {
    const path = "/api/v0/shutdown";
    const asked = AbortSignal.any([late.signal, signal]);
    const response = await agentHttp.request(agent_id, { method: "POST", path, signal: asked });
    await response.discard();
    return response.status < 300;
  } catch (error) {
    log("builds").debug("agent {agent_id} cannot be asked to end: {error}", { agent_id, error });
    return false;
  } finally {
    timer.cancel();
  }
};

/** True when `fired` fires first; false after `ms` milliseconds or when `cancel` fires. */
const firedWithin = (clock: Clock, ms: number, fired: AbortSignal, cancel: AbortSignal): Promise<boolean> =>
  new Promise((resolve) => {
    const over = (): void => {
      timer.cancel();
      fired.removeEventListener("abort", over);
      cancel.removeEventListener("abort", over);
      resolve(fired.aborted);
    };
    const timer = clock.after(ms, over);
    fired.addEventListener("abort", over);
    cancel.addEventListener("abort", over);
    if (fired.aborted || cancel.aborted) over();
  });
