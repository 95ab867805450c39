// Gives Slipway's own daemon a new token when someone has lost access to its workspace, so that a copy of the token that they took is of no
// use (rules AG-28, AG-29). A daemon that cannot be reached gets it with its next connection; other agents keep their token until the next
// build.
import { Value } from "@sinclair/typebox/value";
import { sha256 } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { coalesce, retry } from "#base/retry.ts";
import type { Store } from "#db/engine/store.ts";
import { insertNotification } from "#db/notifications/notifications.ts";
import { RenewedToken } from "#schema/agents/agent-files.ts";
import type { DomainContext } from "../context.ts";
import { type AgentAccessRow, findAgentById } from "./find.ts";
import { makeTimeout, RESPONSE_TIMEOUT_MS, subscribeUntilAbort } from "./secrets-change.ts";

/** The daemon's tunnel may be reconnecting. */
const RETRY_INTERVAL_MS = 5_000;
const MAX_TRIES = 5;
/** Maximum size of a daemon's response, which names up to fifty sub-agents. */
const MAX_ANSWER_BYTES = 8 * 1024;

type Deps = Pick<DomainContext, "store" | "clock" | "topics" | "agentHttp" | "agents" | "dialer" | "encryption">;

/**
 * Derives an agent's token; `generation` counts how often it was replaced. Only a digest is stored, but each call returns the same token:
 * several programs on one machine sign in separately and must not sign each other out, and an interrupted renewal is repeated with it.
 */
export const makeAgentToken = (
  { encryption }: Pick<DomainContext, "encryption">,
  agent_id: string,
  generation: number,
): string => encryption.deriveUuid(`agent_token:${agent_id}${generation === 0 ? "" : `:${generation}`}`);

/** Renews this agent's token whenever it is older than the last loss of access, until the signal aborts. */
export const renewTokenOnLostAccess = async (deps: Deps, agent_id: string, signal: AbortSignal): Promise<void> => {
  const agent = await findAgentById(deps.store, agent_id);
  if (!agent || signal.aborted) return;
  const check = coalesce(() => renewIfOld(deps, agent_id, signal));
  subscribeUntilAbort(deps, "access_changed", agent.workspace_id, check, signal);
  // Access may have been lost while the daemon was not connected.
  check();
};

/** Never rejects. Deletes a sub-agent whose parent does not confirm it: it may belong to the person who lost access. */
const renewIfOld = async (deps: Deps, agent_id: string, signal: AbortSignal): Promise<void> => {
  const toRetryDelay = (error: unknown, failures: number): number | undefined => {
    log("agents").warn("cannot renew the token of agent {agent_id}: {error}", { agent_id, error });
    return failures < MAX_TRIES ? RETRY_INTERVAL_MS : undefined;
  };
  try {
    const agent = await findAgentById(deps.store, agent_id);
    if (!agent || !isTokenOld(agent)) return;
    const { parent_id } = agent;
    if (parent_id !== null && !(await awaitParentRenewal(deps, parent_id, signal))) {
      if (!signal.aborted) await deps.agents.ask(parent_id, "deleteSubAgent", { id: agent_id });
      return;
    }
    await retry(deps.clock, () => renewOnce(deps, agent_id, signal), toRetryDelay, signal);
  } catch (error) {
    log("agents").warn("the token of agent {agent_id} was not renewed: {error}", { agent_id, error });
  }
};

/** Returns whether people other than its owner can enter the agent's workspace. */
export const isWorkspaceShared = async (store: Store, agent_id: string): Promise<boolean> => {
  const agent = await findAgentById(store, agent_id);
  return agent !== undefined && Object.keys({ ...agent.user_acl, ...agent.group_acl }).length > 0;
};

/** Returns whether someone has lost access since the agent's token was made. */
const isTokenOld = ({ access_lost_at, token_made_at }: AgentAccessRow): boolean =>
  access_lost_at !== null && access_lost_at > (token_made_at ?? 0);

/**
 * Waits until the parent has a new token; false on a timeout. A renewal also deletes the sub-agents that the parent's daemon did not
 * create.
 */
const awaitParentRenewal = async (
  { store, clock, topics }: Deps,
  parent_id: string,
  signal: AbortSignal,
): Promise<boolean> => {
  const isRenewed = async (): Promise<boolean> => {
    const parent = await findAgentById(store, parent_id);
    return parent !== undefined && !isTokenOld(parent);
  };
  const late = makeTimeout(clock, MAX_TRIES * RETRY_INTERVAL_MS);
  const done = Promise.withResolvers<void>();
  const unsubscribe = topics.subscribe("agent_token_renewed", parent_id, () => done.resolve());
  const ended = AbortSignal.any([late.signal, signal]);
  ended.addEventListener("abort", () => done.resolve(), { once: true });
  try {
    if (await isRenewed()) return true;
    await done.promise;
    return await isRenewed();
  } finally {
    unsubscribe();
    late.cancel();
  }
};

const renewOnce = async (deps: Deps, agent_id: string, signal: AbortSignal): Promise<void> => {
  const { store, agents, dialer } = deps;
  const agent = await findAgentById(store, agent_id);
  const made_at = agent?.access_lost_at ?? null;
  if (!agent || made_at === null || !isTokenOld(agent)) return;
  const token_generation = agent.token_generation + 1;
  const token = makeAgentToken(deps, agent_id, token_generation);
  const renewal = { token_hash: sha256(token), token_generation, made_at };
  if (dialer.isContested(agent_id) || agent.daemon_replaced_at !== null) {
    // The wrong daemon may have created sub-agents.
    await agents.ask(agent_id, "renewToken", { ...renewal, sub_agents: [] });
    dialer.closeOther(agent_id, undefined);
    return notifyAgentEnded(deps, agent);
  }
  const tunnel = dialer.getTunnel(agent_id);
  // The daemon keeps both tokens until one of them is accepted, so a crash between these two steps does not lock it out.
  const sub_agents = await sendToken(deps, agent_id, token, signal);
  const currentTunnel = dialer.getTunnel(agent_id);
  if (tunnel !== undefined && tunnel !== currentTunnel) throw new Error("its tunnel was replaced");
  await agents.ask(agent_id, "renewToken", { ...renewal, sub_agents });
  dialer.closeOther(agent_id, currentTunnel);
};

/** Neither daemon gets the new token, because either may belong to the person who lost access. */
const notifyAgentEnded = async ({ store, clock, topics }: Deps, agent: AgentAccessRow): Promise<void> => {
  const { workspace_id, workspace_name: workspace, owner_id } = agent;
  const now = clock.now();
  await store.commit([
    insertNotification({
      now,
      user_id: owner_id,
      kind: "workspace_agent_ended",
      values: { workspace, agent: agent.agent_name },
      targets: [workspace_id],
      path: `/workspaces/${workspace_id}`,
      dedupe: `workspace_agent_ended:${agent.agent_id}:${now}`,
    }),
  ]);
  topics.publish("notified", owner_id, {});
};

/** Returns the sub-agents that the daemon created; older daemons do not name them. */
const sendToken = async (
  { agentHttp, clock }: Deps,
  agent_id: string,
  token: string,
  signal: AbortSignal,
): Promise<readonly string[]> => {
  const late = makeTimeout(clock, RESPONSE_TIMEOUT_MS);
  try {
    const response = await agentHttp.request(agent_id, {
      method: "POST",
      path: "/api/v0/renew-token",
      json: { token },
      signal: AbortSignal.any([signal, late.signal]),
    });
    if (response.status !== 200) {
      await response.discard();
      throw new Error(`the daemon answers ${response.status}`);
    }
    const answer = await response.json<unknown>(MAX_ANSWER_BYTES);
    return Value.Check(RenewedToken, answer) ? answer.sub_agents : [];
  } finally {
    late.cancel();
  }
};
