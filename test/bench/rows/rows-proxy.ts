// The app row: a large download through the app proxy, compared with the same download from the app itself.
import { type AppProcess, startApp } from "#test/api/applications/app-world.ts";
import { processorMs, residentMiB } from "../machine.ts";
import { type Bench, type Figures, productFigure, productRatio, type Row } from "../row.ts";
import { startReachableAgent } from "./rows-tunnel.ts";

const GiB = 1024 ** 3;
const DOWNLOAD_BYTES = 2 * GiB;
/** A first download to warm up code and buffers. */
const WARM_UP_BYTES = GiB / 4;
const SAMPLE_MS = 20;

type Download = { url: string; headers: Record<string, string> };

/** Reads and discards the whole response. Returns the speed in MiB per second. */
const download = async ({ url, headers }: Download, bytes: number): Promise<number> => {
  const startedAt = performance.now();
  const response = await fetch(`${url}/bytes?n=${bytes}`, { headers });
  let size = 0;
  for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) size += part.byteLength;
  if (response.status !== 200 || size !== bytes) throw new Error(`answered ${response.status} with ${size} bytes`);
  return bytes / 2 ** 20 / ((performance.now() - startedAt) / 1000);
};

/** Returns a process's CPU seconds. */
const readCpuSeconds = (pid: number): number => processorMs(pid) / 1000;

const measureThroughProxy = async (bench: Bench, app: AppProcess): Promise<Figures> => {
  await using reach = await startReachableAgent(bench);
  const { product, daemon, headers } = reach;
  const source = { url: `${product.url}${reach.apps}/${app.port}`, headers };
  await download(source, WARM_UP_BYTES);
  const pids = { server: product.pid, daemon: daemon.pid };
  const before = {
    memory: residentMiB(pids.server),
    server: readCpuSeconds(pids.server),
    daemon: readCpuSeconds(pids.daemon),
  };
  let peak = before.memory;
  const sampling = setInterval(() => {
    peak = Math.max(peak, residentMiB(pids.server));
  }, SAMPLE_MS);
  const speed = await download(source, DOWNLOAD_BYTES).finally(() => clearInterval(sampling));
  return {
    mib_per_s: speed,
    growth_mib: peak - before.memory,
    server_s_per_gib: (readCpuSeconds(pids.server) - before.server) / (DOWNLOAD_BYTES / GiB),
    daemon_s_per_gib: (readCpuSeconds(pids.daemon) - before.daemon) / (DOWNLOAD_BYTES / GiB),
  };
};

export const proxy: Row = {
  name: "proxy",
  title:
    "A download of 2 GiB from an app of a workspace through the app proxy; floor: from the app itself over loopback",
  sides: ["floor", "product"],
  async measure(bench, side) {
    await using app = await startApp();
    if (side === "product") return await measureThroughProxy(bench, app);
    const source = { url: `http://127.0.0.1:${app.port}`, headers: {} };
    await download(source, WARM_UP_BYTES);
    return { mib_per_s: await download(source, DOWNLOAD_BYTES) };
  },
  figures: {
    mib_per_s: "MiB/s",
    growth_mib: "server's memory growth MiB",
    server_s_per_gib: "server's processor seconds per GiB",
    daemon_s_per_gib: "daemon's processor seconds per GiB",
  },
  verdicts: [
    {
      what: "MiB/s, product / floor",
      target: ">= 0.6",
      value: productRatio("mib_per_s"),
      bound: 0.6,
      better: "higher",
      unit: "ratio",
    },
    {
      what: "growth of the server's memory during 2 GiB",
      target: "<= 64 MB",
      value: productFigure("growth_mib"),
      bound: 64,
      better: "lower",
      unit: "MB",
    },
  ],
};
