// Gives Slipway's own daemon a new token when someone has lost access to its workspace, so that a copy of the token that they took is of no
// use (rules AG-28, AG-29). A daemon that cannot be reached gets it with its next connection; other agents keep their token until the next build.
import { sha256 } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { coalesce, retry } from "#base/retry.ts";
import { insertNotification } from "#db/notifications/notifications.ts";
import type { DomainContext } from "../context.ts";
import { type AgentPlace, findAgentById } from "./find.ts";
import { makeTimeout, RESPONSE_TIMEOUT_MS } from "./secrets-change.ts";

/** Its tunnel may be reconnecting. */
const RETRY_INTERVAL_MS = 5_000;
const MAX_TRIES = 5;

type Deps = Pick<DomainContext, "store" | "clock" | "topics" | "agentHttp" | "agents" | "dialer" | "encryption">;

/**
 * Derives an agent's token from how often it was replaced. Only a digest is stored, yet the token is the same each time: several programs on
 * one machine sign in separately and must not sign each other out, and a renewal that was interrupted is repeated with the same token.
 */
export const makeAgentToken = (
  { encryption }: Pick<DomainContext, "encryption">,
  agent_id: string,
  generation: number,
): string => encryption.deriveUuid(`agent_token:${agent_id}${generation === 0 ? "" : `:${generation}`}`);

/** Renews this agent's token whenever it is older than the last loss of access, until the signal aborts. */
export const renewTokenOnLostAccess = async (deps: Deps, agent_id: string, signal: AbortSignal): Promise<void> => {
  const place = await findAgentById(deps.store, agent_id);
  if (!place || signal.aborted) return;
  const check = coalesce(() => renewIfOld(deps, agent_id, signal));
  const leaves = [
    deps.topics.subscribe("access_changed", place.workspace_id, check),
    deps.topics.subscribe("missed", "", check),
  ];
  const undo = (): void => {
    for (const leave of leaves) leave();
  };
  signal.addEventListener("abort", undo, { once: true });
  // It may have been lost while the daemon was not connected.
  check();
};

/** Never rejects. */
const renewIfOld = async (deps: Deps, agent_id: string, signal: AbortSignal): Promise<void> => {
  const toRetryDelay = (error: unknown, failures: number): number | undefined => {
    log("agents").warn("cannot renew the token of agent {agent_id}: {error}", { agent_id, error });
    return failures < MAX_TRIES ? RETRY_INTERVAL_MS : undefined;
  };
  await retry(deps.clock, () => renewOnce(deps, agent_id, signal), toRetryDelay, signal).catch(() => undefined);
};

const renewOnce = async (deps: Deps, agent_id: string, signal: AbortSignal): Promise<void> => {
  const { store, agents, dialer } = deps;
  const place = await findAgentById(store, agent_id);
  const made_at = place?.access_lost_at ?? null;
  if (!place || made_at === null || made_at <= (place.token_made_at ?? 0)) return;
  const token_generation = place.token_generation + 1;
  const token = makeAgentToken(deps, agent_id, token_generation);
  const renewal = { token_hash: sha256(token), token_generation, made_at };
  if (dialer.isContested(agent_id)) {
    // The wrong daemon may have created sub-agents.
    await agents.ask(agent_id, "renewToken", { ...renewal, deletes_sub_agents: true });
    dialer.closeOther(agent_id, undefined);
    return noticeRestart(deps, place);
  }
  const tunnel = dialer.getTunnel(agent_id);
  // The daemon keeps both tokens until one of them is accepted, so a crash between these two steps does not lock it out.
  await sendToken(deps, agent_id, token, signal);
  const used = dialer.getTunnel(agent_id);
  if (tunnel !== undefined && tunnel !== used) throw new Error("its tunnel was replaced");
  await agents.ask(agent_id, "renewToken", renewal);
  dialer.closeOther(agent_id, used);
};

/** Neither daemon has got the new token, because either daemon may be the one of the person who lost access. */
const noticeRestart = async ({ store, clock, topics }: Deps, place: AgentPlace): Promise<void> => {
  const { workspace_id, workspace_name: workspace, owner_id } = place;
  const now = clock.now();
  await store.commit([
    insertNotification({
      now,
      user_id: owner_id,
      kind: "workspace_agent_ended",
      values: { workspace, agent: place.agent_name },
      targets: [workspace_id],
      path: `/workspaces/${workspace_id}`,
      dedupe: `workspace_agent_ended:${place.agent_id}:${now}`,
    }),
  ]);
  topics.publish("notified", owner_id, {});
};

const sendToken = async (
  { agentHttp, clock }: Deps,
  agent_id: string,
  token: string,
  signal: AbortSignal,
): Promise<void> => {
  const late = makeTimeout(clock, RESPONSE_TIMEOUT_MS);
  try {
    const response = await agentHttp.request(agent_id, {
      method: "POST",
      path: "/api/v0/renew-token",
      json: { token },
      signal: AbortSignal.any([signal, late.signal]),
    });
    await response.discard();
    if (response.status !== 200) throw new Error(`the daemon answers ${response.status}`);
  } finally {
    late.cancel();
  }
};
