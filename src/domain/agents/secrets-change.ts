// Notifies Slipway's own daemon that secrets of its workspace's owner have changed, so that it requests its manifest again (rule US-7). If
// the daemon cannot be reached, it gets the change with its next connection.
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { coalesce, retry } from "#base/retry.ts";
import type { DomainContext } from "../context.ts";
import { findAgentById } from "./find.ts";

/** A daemon responds before it acts on the request. */
export const RESPONSE_TIMEOUT_MS = 10_000;
/** The daemon's tunnel may be reconnecting. */
const RETRY_INTERVAL_MS = 5_000;
const MAX_TRIES = 5;

type Deps = Pick<DomainContext, "store" | "clock" | "topics" | "agentHttp">;

/** Notifies this agent's daemon of each change until the signal aborts. Changes during a notification cause one more. */
export const notifySecretsChanges = async (deps: Deps, agent_id: string, signal: AbortSignal): Promise<void> => {
  const agent = await findAgentById(deps.store, agent_id);
  if (!agent || signal.aborted) return;
  const notify = coalesce(() => requestRenewal(deps, agent_id, signal));
  subscribeUntilAbort(deps, "secrets_changed", agent.owner_id, notify, signal);
};

/** Calls the listener for each event of this topic, and when events may have been missed, until the signal aborts. */
export const subscribeUntilAbort = (
  { topics }: Pick<Deps, "topics">,
  kind: "secrets_changed" | "access_changed",
  id: string,
  listener: () => void,
  signal: AbortSignal,
): void => {
  const unsubscribes = [topics.subscribe(kind, id, listener), topics.subscribe("missed", "", listener)];
  const unsubscribeAll = (): void => {
    for (const unsubscribe of unsubscribes) unsubscribe();
  };
  signal.addEventListener("abort", unsubscribeAll, { once: true });
};

/** Never rejects. */
const requestRenewal = async (deps: Deps, agent_id: string, signal: AbortSignal): Promise<void> => {
  const toRetryDelay = (error: unknown, failures: number): number | undefined => {
    log("agents").debug("cannot notify agent {agent_id} of changed secrets: {error}", { agent_id, error });
    return failures < MAX_TRIES ? RETRY_INTERVAL_MS : undefined;
  };
  await retry(deps.clock, () => requestRenewalOnce(deps, agent_id, signal), toRetryDelay, signal).catch(
    () => undefined,
  );
};

/** An older daemon does not know this path; its error response is accepted as well. */
const requestRenewalOnce = async ({ agentHttp, clock }: Deps, agent_id: string, signal: AbortSignal): Promise<void> => {
  const late = makeTimeout(clock, RESPONSE_TIMEOUT_MS);
  try {
    const requested = AbortSignal.any([signal, late.signal]);
    const path = "/api/v0/renew-secrets";
    const response = await agentHttp.request(agent_id, { method: "POST", path, signal: requested });
    await response.discard();
  } finally {
    late.cancel();
  }
};

/** Returns a signal that aborts after this time unless it is canceled. */
export const makeTimeout = (clock: Clock, ms: number): { readonly signal: AbortSignal; cancel(): void } => {
  const timeout = new AbortController();
  const timer = clock.after(ms, () => timeout.abort());
  return { signal: timeout.signal, cancel: () => timer.cancel() };
};
