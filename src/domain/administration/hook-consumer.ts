// The configured consumer of lifecycle hooks and a test of whether it responds, for site owners. Its secret is never shown.
import { makeConsumer } from "#actors/hooks/open.ts";
import { conflict } from "#base/errors.ts";
import type { HookConsumer, TriedHookConsumer } from "#schema/chats/hook-dispatch.ts";
import { probeConsumer } from "#src/hooks/probe.ts";
import type { DomainContext } from "../context.ts";

export const presentHookConsumer = ({ config }: Pick<DomainContext, "config">): HookConsumer => ({
  configured: makeConsumer(config) !== undefined,
  enabled: config.hook_enabled,
  mode: config.hook_mode,
  url: config.hook_url ? toPlainUrl(config.hook_url) : "",
  timeout_ms: config.hook_timeout,
  has_previous_secret: config.hook_previous_secret !== undefined,
  keeps_contents: config.hook_ledger_contents,
  ledger_days: config.hook_ledger_days,
});

const toPlainUrl = (text: string): string => {
  const { origin, pathname } = new URL(text);
  return `${origin}${pathname}`;
};

/** Sends a signed test event whose response is ignored. Rejects with 409 when no consumer is configured. */
export const tryHookConsumer = async ({
  config,
  clock,
}: Pick<DomainContext, "config" | "clock">): Promise<TriedHookConsumer> => {
  const consumer = makeConsumer(config);
  if (!consumer) throw conflict("No consumer is configured. Set hook_url and hook_secret.");
  const started = clock.monotonic();
  const problem = await probeConsumer(clock, consumer);
  const took_ms = Math.round(clock.monotonic() - started);
  return problem === undefined ? { works: true, took_ms } : { works: false, problem, took_ms };
};
