// The agent log rows: throughput, latency at a fixed rate next to an unrelated read, fan-out, and stalled and idle followers.
import { residentMiB } from "../machine.ts";
import { type Bench, countFaults, type Figures, productFigure, productRatio, type Row, range } from "../row.ts";
import type { SideName } from "../sides.ts";

const faultFigures = { faults: "faults", driver_busy: "driver busy" };

/** Sends batches of 100 lines from 8 agents with one follower each, as fast as they are acknowledged. */
export async function measureIngest(bench: Bench, side: SideName): Promise<Figures> {
  await using target = await bench.start(side, { agents: 8 });
  const plan = [...range(8).map(target.patch), ...range(8).map(target.follow)];
  const result = await bench.driver.load(target.port, plan, { secs: bench.seconds });
  const { ack, follow } = result;
  return {
    lines_per_s: result.lines_per_s,
    ack_p50: ack.p50,
    ack_p99: ack.p99,
    follow_p50: follow.p50,
    follow_p99: follow.p99,
    ...countFaults(result),
  };
}

export const ingest: Row = {
  name: "ingest",
  title: "PATCH logs, 100-line batches, 8 agents, one follower each, closed loop",
  sides: ["floor", "product"],
  measure: measureIngest,
  figures: {
    lines_per_s: "lines/s",
    ack_p50: "ack p50 ms",
    ack_p99: "ack p99 ms",
    follow_p50: "follower p50 ms",
    follow_p99: "follower p99 ms",
    ...faultFigures,
  },
  verdicts: [
    {
      what: "lines/s, product / floor",
      target: ">= 0.85",
      value: productRatio("lines_per_s"),
      bound: 0.85,
      better: "higher",
      unit: "ratio",
    },
  ],
};

const LINES_PER_BATCH = 100;
/** Share of the baseline's maximum. With a higher rate, a queue would grow on one side only, and its length would be measured. */
const FIXED_SHARE = 0.5;

export const steady: Row = {
  name: "steady",
  title: "The same at half the rate that the floor takes at most, with an unrelated GET every ms",
  sides: ["floor", "product"],
  async measure(bench, side) {
    await using target = await bench.start(side, { agents: 8 });
    const idle = await bench.driver.load(target.port, [target.probe()], { secs: bench.seconds, probe_us: 1000 });
    const plan = [...range(8).map(target.patch), ...range(8).map(target.follow), target.probe()];
    const rate = Math.round(((await bench.floorLimit()) * FIXED_SHARE) / LINES_PER_BATCH);
    const result = await bench.driver.load(target.port, plan, { secs: bench.seconds, rate, probe_us: 1000 });
    return {
      follow_p50: result.follow.p50,
      follow_p99: result.follow.p99,
      ack_p50: result.ack.p50,
      ack_p99: result.ack.p99,
      get_idle_p50: idle.probe.p50,
      get_idle_p99: idle.probe.p99,
      get_p50: result.probe.p50,
      get_p99: result.probe.p99,
      lines_per_s: result.lines_per_s,
      ...countFaults(result),
    };
  },
  figures: {
    follow_p50: "follower p50 ms",
    follow_p99: "follower p99 ms",
    ack_p50: "ack p50 ms",
    ack_p99: "ack p99 ms",
    get_idle_p50: "idle GET p50 ms",
    get_idle_p99: "idle GET p99 ms",
    get_p50: "GET p50 ms",
    get_p99: "GET p99 ms",
    lines_per_s: "lines/s",
    ...faultFigures,
  },
  verdicts: [
    {
      what: "request sent to follower received, p99, product / floor",
      target: "<= 1.3",
      value: productRatio("follow_p99"),
      bound: 1.3,
      better: "lower",
      unit: "ratio",
    },
    {
      what: "unrelated GET under that load, p99",
      target: "<= 1.5 x its idle p99",
      value: productFigure("get_p99"),
      bound: ({ product }) => 1.5 * (product?.get_idle_p99 ?? 0),
      better: "lower",
      unit: "ms",
    },
  ],
};

export const fanout: Row = {
  name: "fanout",
  title: "1,000 followers of one agent, 1-line batches",
  sides: ["floor", "product"],
  async measure(bench, side) {
    // Each load has a new agent: followers start with the stored lines, and every line must be new to them.
    await using target = await bench.start(side, { agents: 2 });
    const load = (agent: number, batches: number) => {
      const followers = range(1000).map(() => target.follow(agent));
      return bench.driver.load(target.port, [...range(batches).map(() => target.publish(agent)), ...followers], {
        secs: bench.seconds,
        lines: 1,
        barrier: 1,
      });
    };
    const single = await load(0, 1);
    const burst = await load(1, 16);
    return {
      deliveries_per_s: single.deliveries_per_s,
      follow_p99: single.follow.p99,
      burst_deliveries_per_s: burst.deliveries_per_s,
      burst_follow_p99: burst.follow.p99,
      faults: (countFaults(single).faults ?? 0) + (countFaults(burst).faults ?? 0),
      driver_busy: Math.max(single.driver_busy, burst.driver_busy),
    };
  },
  figures: {
    deliveries_per_s: "deliveries/s",
    follow_p99: "follower p99 ms",
    burst_deliveries_per_s: "deliveries/s, bursts of 16",
    burst_follow_p99: "follower p99 ms, bursts of 16",
    ...faultFigures,
  },
  verdicts: [
    {
      what: "deliveries/s, one batch at a time, product / Bun's own publish",
      target: ">= 0.9",
      value: productRatio("deliveries_per_s"),
      bound: 0.9,
      better: "higher",
      unit: "ratio",
    },
    {
      what: "deliveries/s, 16 batches at a time, product / Bun's own publish",
      target: ">= 0.9",
      value: productRatio("burst_deliveries_per_s"),
      bound: 0.9,
      better: "higher",
      unit: "ratio",
    },
  ],
};

const RETURN_SECONDS = 14;
/** Reading the memory of a process can take a tenth of a second, in which the system partly blocks the process. */
const SAMPLE_MS = 1000;

/**
 * Runs twice: first, the stalled followers resume after 14 s and must find the close frame with its reason; then they do not read during
 * the whole time. (Bun keeps a close frame that the kernel does not accept for about 15 s, and then drops the connection.)
 */
export const stalled: Row = {
  name: "stalled",
  title: "50 followers that stop reading, alongside 10 that read (25 batches/s of 100 lines)",
  sides: ["floor", "product"],
  maxRounds: 1,
  async measure(bench, side) {
    await using target = await bench.start(side, { agents: 2 });
    let rssBefore: number | undefined;
    let rssPeak = 0;
    const runStalled = async (agent: number, secs: number) => {
      const plan = [target.patch(agent), ...range(10).map(() => target.follow(agent))];
      let sampling: ReturnType<typeof setInterval> | undefined;
      return await bench.driver.load(target.port, plan, { secs, warm: 5, rate: 25, stalled: 50 }, (event) => {
        if (event === "released") return clearInterval(sampling);
        rssBefore ??= residentMiB(target.pid);
        sampling = setInterval(() => {
          rssPeak = Math.max(rssPeak, residentMiB(target.pid));
        }, SAMPLE_MS);
      });
    };
    const resumedRun = await runStalled(0, Math.min(RETURN_SECONDS, bench.stallSeconds));
    const silentRun = await runStalled(1, bench.stallSeconds);
    const stillOpen = (resumedRun.stalled?.still_open ?? 0) + (silentRun.stalled?.still_open ?? 0);
    return {
      rss_before_mb: rssBefore ?? Number.NaN,
      rss_growth_mb: rssPeak - (rssBefore ?? Number.NaN),
      closed: (silentRun.stalled?.closed_with_frame ?? 0) + (silentRun.stalled?.closed_without_frame ?? 0),
      told_reason: resumedRun.stalled?.closed_with_frame ?? 0,
      still_open: stillOpen,
      follow_p50: silentRun.follow.p50,
      follow_p99: silentRun.follow.p99,
      faults: (countFaults(resumedRun).faults ?? 0) + (countFaults(silentRun).faults ?? 0),
      driver_busy: silentRun.driver_busy,
    };
  },
  figures: {
    rss_before_mb: "memory before MB",
    rss_growth_mb: "memory growth MB",
    closed: "closed while away",
    told_reason: "received the reason when back after 14 s",
    still_open: "still open",
    follow_p50: "other followers p50 ms",
    follow_p99: "other followers p99 ms",
    ...faultFigures,
  },
  verdicts: [
    {
      what: "memory growth",
      target: "<= 100 MB",
      value: productFigure("rss_growth_mb"),
      bound: 100,
      better: "lower",
      unit: "MB",
    },
    {
      what: "stalled followers closed while away",
      target: "50 of 50",
      value: productFigure("closed"),
      bound: 50,
      better: "higher",
      unit: "count",
    },
    {
      what: "stalled followers that received the reason when back after 14 s",
      target: "50 of 50",
      value: productFigure("told_reason"),
      bound: 50,
      better: "higher",
      unit: "count",
    },
    {
      what: "other followers p99, product / floor",
      target: "<= 2",
      value: productRatio("follow_p99"),
      bound: 2,
      better: "lower",
      unit: "ratio",
    },
    {
      what: "faults seen by the other followers",
      target: "0",
      value: productFigure("faults"),
      bound: 0,
      better: "lower",
      unit: "count",
    },
  ],
};

export const idle: Row = {
  name: "idle",
  title: "10,000 idle followers",
  sides: ["floor", "product"],
  maxRounds: 2,
  async measure(bench, side) {
    const followers = 10_000;
    await using target = await bench.start(side, { agents: 100 });
    const probe = () =>
      bench.driver.load(target.port, [target.probe()], { secs: bench.seconds, warm: 2, probe_us: 1000 });
    const before = await probe();
    const rssBefore = residentMiB(target.pid);
    await using _followers = await bench.driver.hold(target.port, range(100).map(target.follow), followers);
    await Bun.sleep(2000);
    const rssAfter = residentMiB(target.pid);
    const after = await probe();
    return {
      kib_each: ((rssAfter - rssBefore) * 1024) / followers,
      get_before_p99: before.probe.p99,
      get_after_p99: after.probe.p99,
      get_before_p50: before.probe.p50,
      get_after_p50: after.probe.p50,
    };
  },
  figures: {
    kib_each: "KB each",
    get_before_p50: "GET p50 ms before",
    get_after_p50: "GET p50 ms with them",
    get_before_p99: "GET p99 ms before",
    get_after_p99: "GET p99 ms with them",
  },
  verdicts: [
    {
      what: "memory of one idle follower",
      target: "<= 8 KB",
      value: productFigure("kib_each"),
      bound: 8,
      better: "lower",
      unit: "KB",
    },
    {
      what: "GET p99 with them",
      target: "as before (+ 20 % or 0.1 ms of noise)",
      value: productFigure("get_after_p99"),
      bound: ({ product }) => Math.max(1.2 * (product?.get_before_p99 ?? 0), 0.1 + (product?.get_before_p99 ?? 0)),
      better: "lower",
      unit: "ms",
    },
  ],
};
