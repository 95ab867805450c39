// OpenTelemetry traces: spans by OTLP over HTTP (JSON) to a collector. Loaded only if a collector is configured.
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from "@opentelemetry/resources";
import { ParentBasedSampler, TraceIdRatioBasedSampler, TracerProvider } from "@opentelemetry/sdk-trace";
import type { Clock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import { uuid } from "#base/ids.ts";
import { finishesWithin } from "#base/retry.ts";
import { setTracer, type Telemetry } from "#base/spans.ts";
import { VERSION } from "#base/version.ts";
import { CountedSpans } from "./exporter.ts";
import { OtlpTracer } from "./otlp-span.ts";

/** How long a shutdown waits for the collector to accept the last spans. */
const SHUTDOWN_TIMEOUT_MS = 2_000;
/** Timeout of an export, including its retries. */
const EXPORT_TIMEOUT_MS = 10_000;

type TraceConfig = Pick<Config, "otlp_headers" | "otlp_service_name" | "otlp_sample_percent">;

/** Starts sending this process's spans to the collector at `endpoint`. */
export const openTelemetry = (endpoint: URL, config: TraceConfig, clock: Clock): Telemetry => {
  const { otlp_headers: headers = {}, otlp_service_name: name = "slipway", otlp_sample_percent: percent } = config;
  const url = `${endpoint.href.replace(/\/$/, "")}/v1/traces`;
  const spans = new CountedSpans(
    new OTLPTraceExporter({ url, headers: { ...headers }, timeoutMillis: EXPORT_TIMEOUT_MS, concurrencyLimit: 2 }),
    endpoint,
    clock,
  );
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(detectResources({ detectors: [envDetector] }))
      .merge(
        resourceFromAttributes({ "service.name": name, "service.version": VERSION, "service.instance.id": uuid() }),
      ),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(percent / 100) }),
    spanLimits: { attributeValueLengthLimit: 256 },
    spanProcessors: [spans],
  });
  const tracer = new OtlpTracer(provider.getTracer("slipway", VERSION));
  setTracer(tracer);
  return {
    counts: spans.counts,
    async [Symbol.asyncDispose]() {
      setTracer(undefined);
      await finishesWithin(
        clock,
        SHUTDOWN_TIMEOUT_MS,
        provider.shutdown().catch(() => {}),
      );
    },
  };
};
