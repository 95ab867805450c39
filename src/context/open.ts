// Opens the data directory and builds everything on it: what `serve` and tests begin with.
import { type Clock, systemClock } from "#base/clock.ts";
import type { Metrics } from "#base/metrics.ts";
import { openKey } from "#db/engine/sealed.ts";
import { Context, type ContextOptions } from "./context.ts";
import { openStore } from "./open-store.ts";

export const openContext = async (options: ContextOptions): Promise<Context> => {
  const { config, clock = systemClock, fatal } = options;
  // Loaded only where figures are served: the library takes 27 ms of a start.
  const metrics = config.metrics_address ? await openMetrics(clock) : undefined;
  const opened = options.store
    ? { store: options.store, elsewhere: options.elsewhere, membership: options.membership }
    : await openStore({ config, clock, fatal, membership: options.membership });
  const { data_dir: directory, encryption_key: digits } = config;
  const encryption = await openKey(opened.store, { directory, digits, shared: opened.membership !== undefined });
  const context = new Context(options, opened, encryption, metrics);
  try {
    await context.prepare();
    return context;
  } catch (error) {
    await context[Symbol.asyncDispose]();
    throw error;
  }
};

const openMetrics = async (clock: Clock): Promise<Metrics> => {
  const [{ Metrics }, { presentProcess }] = await Promise.all([
    import("#base/metrics.ts"),
    import("#base/process-figures.ts"),
  ]);
  const metrics = new Metrics(clock);
  presentProcess(metrics);
  return metrics;
};
