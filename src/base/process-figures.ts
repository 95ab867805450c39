// Process metrics under their standard Prometheus names. prom-client's default metrics are not used, because inspecting heap spaces and
// collections blocked the event loop for 20 ms on each scrape.
import { existsSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { LabeledValues } from "./labelled-metrics.ts";
import type { Metrics } from "./metrics.ts";
import { countOpenFiles } from "./system/open-files.ts";

const QUANTILES = [50, 90, 99];
const DESCRIPTORS_PATH = "/proc/self/fd";

export const registerProcessMetrics = (metrics: Metrics): void => {
  const startedAtSeconds = metrics.clock.now() / 1000;
  const readCpuSeconds = (): number => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  };
  metrics.counter("process_cpu_seconds_total", "Processor time of the process.", readCpuSeconds);
  metrics.gauge("process_resident_memory_bytes", "Resident memory.", () => process.memoryUsage.rss());
  metrics.gauge(
    "process_start_time_seconds",
    "When the server was started, seconds since 1970.",
    () => startedAtSeconds,
  );
  if (existsSync(DESCRIPTORS_PATH)) {
    metrics.gauge("process_open_fds", "Open file descriptors.", () => countOpenFiles());
  }
  // Samples 20 times a second, because 100 times would take 5 ms of CPU time per second.
  const delay = monitorEventLoopDelay({ resolution: 50 });
  delay.enable();
  const readDelays = (): LabeledValues => {
    const rows = QUANTILES.map((q) => ({ labels: { quantile: `${q / 100}` }, value: delay.percentile(q) / 1e9 }));
    const delays = [...rows, { labels: { quantile: "1" }, value: delay.max / 1e9 }];
    delay.reset();
    return delays.map(({ labels, value }) => ({ labels, value: Number.isFinite(value) && value > 0 ? value : 0 }));
  };
  metrics.gauge("slipway_event_loop_delay_seconds", "Delay of the event loop since the last scrape.", readDelays, [
    "quantile",
  ]);
};
