// Opens the database and creates the server's context; used by `serve` and tests.
import { type Clock, systemClock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { Metrics } from "#base/metrics.ts";
import type { Telemetry } from "#base/spans.ts";
import { openKey } from "#db/engine/key-check.ts";
import { Context, type ContextOptions } from "./context.ts";
import { openStore } from "./open-store.ts";

export const openContext = async (options: ContextOptions): Promise<Context> => {
  const { config, clock = systemClock, fatal } = options;
  // Imported only if metrics are enabled, because the library adds 27 ms to startup.
  const metrics = config.metrics_address ? await openMetrics(clock) : undefined;
  const database = options.store
    ? { store: options.store, sharedBlobs: options.sharedBlobs, membership: options.membership }
    : await openStore({ config, clock, fatal, membership: options.membership });
  const { data_dir: directory, encryption_key: digits } = config;
  const encryption = await openKey(database.store, { directory, digits, shared: database.membership !== undefined });
  const telemetry = await openTraces(options, clock);
  const context = new Context(options, database, encryption, { metrics, telemetry });
  try {
    await context.prepare();
    return context;
  } catch (error) {
    await context[Symbol.asyncDispose]();
    throw error;
  }
};

const openMetrics = async (clock: Clock): Promise<Metrics> => {
  const [{ Metrics }, { registerProcessMetrics }] = await Promise.all([
    import("#base/metrics.ts"),
    import("#base/process-figures.ts"),
  ]);
  const metrics = new Metrics(clock);
  registerProcessMetrics(metrics);
  return metrics;
};

/** Imported only if a collector is configured. The standard variables that disable OpenTelemetry are respected. */
const openTraces = async (
  { config, environment = {} }: ContextOptions,
  clock: Clock,
): Promise<Telemetry | undefined> => {
  const { otlp_endpoint: endpoint } = config;
  const { OTEL_SDK_DISABLED, OTEL_TRACES_EXPORTER, OTEL_EXPORTER_OTLP_PROTOCOL } = environment;
  if (!endpoint || OTEL_SDK_DISABLED?.toLowerCase() === "true" || OTEL_TRACES_EXPORTER === "none") return undefined;
  if (OTEL_EXPORTER_OTLP_PROTOCOL === "grpc")
    log("server").warn(
      "OTEL_EXPORTER_OTLP_PROTOCOL is grpc, but traces are sent over HTTP. Use the HTTP port, usually 4318",
    );
  const { openTelemetry } = await import("#src/telemetry/open.ts");
  return openTelemetry(endpoint, config, clock);
};
