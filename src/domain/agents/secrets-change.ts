// Notifies Slipway's own daemon that secrets of its workspace's owner have changed, so that it requests its manifest again (rule US-7). If
// the daemon cannot be reached, it gets the change with its next connection.
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { coalesced, retry } from "#base/retry.ts";
import type { DomainContext } from "../context.ts";
import { findAgentById } from "./find.ts";

/** A daemon responds before it does anything. */
const ANSWER_MS = 10_000;
/** Its tunnel may be reconnecting. */
const AGAIN_MS = 5_000;
const TRIES = 5;

type Deps = Pick<DomainContext, "store" | "clock" | "topics" | "agentHttp">;

/** Notifies this agent's daemon of each change until the signal aborts. Changes during a notification cause one more. */
export const tellSecretsChange = async (deps: Deps, agent_id: string, signal: AbortSignal): Promise<void> => {
  const place = await findAgentById(deps.store, agent_id);
  if (!place || signal.aborted) return;
  const tell = coalesced(() => askToRenew(deps, agent_id, signal));
  const leaves = [
    deps.topics.subscribe("secrets_changed", place.owner_id, tell),
    deps.topics.subscribe("missed", "", tell),
  ];
  const undo = (): void => {
    for (const leave of leaves) leave();
  };
  signal.addEventListener("abort", undo, { once: true });
};

/** Never rejects. */
const askToRenew = async (deps: Deps, agent_id: string, signal: AbortSignal): Promise<void> => {
  const again = (error: unknown, failures: number): number | undefined => {
    log("agents").debug("agent {agent_id} cannot be told of changed secrets: {error}", { agent_id, error });
    return failures < TRIES ? AGAIN_MS : undefined;
  };
  await retry(deps.clock, () => askOnce(deps, agent_id, signal), again, signal).catch(() => undefined);
};

/** An older daemon does not know this path; its error response is accepted as well. */
const askOnce = async ({ agentHttp, clock }: Deps, agent_id: string, signal: AbortSignal): Promise<void> => {
  const late = lateAfter(clock, ANSWER_MS);
  try {
    const asked = AbortSignal.any([signal, late.signal]);
    const path = "/api/v0/renew-secrets";
    const response = await agentHttp.request(agent_id, { method: "POST", path, signal: asked });
    await response.discard();
  } finally {
    late.cancel();
  }
};

const lateAfter = (clock: Clock, ms: number): { readonly signal: AbortSignal; cancel(): void } => {
  const late = new AbortController();
  const timer = clock.after(ms, () => late.abort());
  return { signal: late.signal, cancel: () => timer.cancel() };
};
