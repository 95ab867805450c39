// The check of `slipway doctor` that tries the consumer of lifecycle hooks.
import { makeConsumer } from "#actors/hooks/open.ts";
import type { Clock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import { probeConsumer } from "#src/hooks/probe.ts";
import type { Finding } from "./finding.ts";

/** Asks the consumer of lifecycle hooks, as the server would. */
export const hookConsumer = async (config: Config, clock: Clock): Promise<Finding[]> => {
  const name = "hooks";
  const consumer = makeConsumer(config);
  if (!consumer) return [];
  if (!config.hook_enabled) return [{ name, status: "warn", detail: "switched off by hook_enabled" }];
  const problem = await probeConsumer(clock, consumer);
  if (problem !== undefined)
    return [{ name, status: "wrong", detail: `the consumer gives no valid answer: ${problem}` }];
  if (config.hook_mode === "observe") {
    return [{ name, status: "warn", detail: "the consumer answers; hook_mode observe enforces nothing" }];
  }
  return [{ name, status: "ok", detail: "the consumer answers" }];
};
