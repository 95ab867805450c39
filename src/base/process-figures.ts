// Figures of the process itself, under the names that dashboards for Prometheus know. The ready-made set of prom-client is not used: its
// walks over heap spaces and collections held the event loop up for 20 ms at each scrape.
import { existsSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Labelled } from "./labelled.ts";
import type { Metrics } from "./metrics.ts";
import { countOpenFiles } from "./system/open-files.ts";

const QUANTILES = [50, 90, 99];
const DESCRIPTORS = "/proc/self/fd";

export const presentProcess = (metrics: Metrics): void => {
  const started = metrics.clock.now() / 1000;
  const cpu = (): number => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  };
  metrics.counter("process_cpu_seconds_total", "Processor time of the process.", cpu);
  metrics.gauge("process_resident_memory_bytes", "Resident memory.", () => process.memoryUsage.rss());
  metrics.gauge("process_start_time_seconds", "When the server was started, seconds since 1970.", () => started);
  if (existsSync(DESCRIPTORS)) {
    metrics.gauge("process_open_fds", "Open file descriptors.", () => countOpenFiles());
  }
  // Looked at 20 times a second: 100 times took 5 ms of processor time of each second, and the log path pays no more for all other figures.
  const delay = monitorEventLoopDelay({ resolution: 50 });
  delay.enable();
  const seconds = (): Labelled => {
    const rows = QUANTILES.map((q) => ({ labels: { quantile: `${q / 100}` }, value: delay.percentile(q) / 1e9 }));
    const all = [...rows, { labels: { quantile: "1" }, value: delay.max / 1e9 }];
    delay.reset();
    return all.map(({ labels, value }) => ({ labels, value: Number.isFinite(value) && value > 0 ? value : 0 }));
  };
  metrics.gauge("slipway_event_loop_delay_seconds", "Delay of the event loop since the last scrape.", seconds, [
    "quantile",
  ]);
};
