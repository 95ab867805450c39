// The `slipway doctor` check of the lifecycle hook consumer.
import { makeConsumer } from "#actors/hooks/open.ts";
import type { Clock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import { probeConsumer } from "#src/hooks/probe.ts";
import type { Finding } from "./finding.ts";

/** Calls the lifecycle hook consumer as the server would. */
export const hookConsumer = async (config: Config, clock: Clock): Promise<Finding[]> => {
  const name = "hooks";
  const consumer = makeConsumer(config);
  if (!consumer) return [];
  if (!config.hook_enabled) return [{ name, status: "warn", detail: "turned off by hook_enabled" }];
  const problem = await probeConsumer(clock, consumer);
  if (problem !== undefined)
    return [{ name, status: "wrong", detail: `the consumer did not return a valid response: ${problem}` }];
  if (config.hook_mode === "observe") {
    return [{ name, status: "warn", detail: "the consumer responds; hook_mode observe enforces nothing" }];
  }
  return [{ name, status: "ok", detail: "the consumer responds" }];
};
