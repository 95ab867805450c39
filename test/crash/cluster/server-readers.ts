// Readers behind a spare that stop reading while what they follow continues: followers of a log (WebSockets), of a workspace (event
// streams), and a download from an app. Everything goes through the spare, so both nodes have to bound their buffers (CLUSTER check 7).
import { connect } from "node:net";
import { Client } from "#src/client.ts";
import { startCluster } from "#test/support/cluster.ts";
import { needs } from "#test/support/needs.ts";
import { until } from "#test/support/until.ts";
import { measureGrowth, type Stage } from "../reader-stage.ts";
import { assertNoProblems } from "../server-crash.ts";
import { download, startWorkspaceApp } from "../server-downloads.ts";
import { checkStalledEvents, checkStalledFollowers } from "../server-slow.ts";
import { signInAdmin } from "../server-world.ts";
import type { Check, CheckOptions } from "../store/store-crash.ts";

const MiB = 1024 * 1024;
const WARM = 64 * MiB;
/** Bytes that the kernel buffers on two loopback connections before a stopped reader is noticed. */
const MIN_EVENTS = 32 * MiB;
/** High enough for any test. */
const env = { SLIPWAY_AGENT_LOG_LIMIT: String(2 ** 36) };

/** Two nodes; all requests go to the spare. */
const startBehindSpare = async (): Promise<Stage> => {
  const cluster = await startCluster();
  const active = await cluster.start(1, { env });
  const spare = await cluster.start(2, { env });
  return {
    world: await signInAdmin({ client: new Client(spare.url) }),
    processes: [
      { name: "active node", pid: active.pid },
      { name: "spare", pid: spare.pid },
    ],
    async stop() {
      for (const node of [active, spare]) node.signal("SIGTERM");
      await Promise.all([active.exited, spare.exited]);
    },
    [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
  };
};

/** A download whose reader pauses: nothing arrives in the meantime, and everything in the end. */
const checkStalledDownload = async (
  { seed }: CheckOptions,
  { bytes, still_ms }: { bytes: number; still_ms: number },
) => {
  await using stage = await startBehindSpare();
  const { world } = stage;
  await using app = await startWorkspaceApp(world);
  await until(async () => (await download(world, app.url, WARM)) === 200, { what: "a first download" });
  const { url } = world.admin;
  const socket = connect(Number(url.port), url.hostname);
  let taken = 0;
  socket.on("data", (chunk: Buffer) => {
    taken += chunk.byteLength;
  });
  socket.write(
    `GET ${app.url.pathname}?n=${bytes} HTTP/1.1\r\nHost: ${url.host}\r\nConnection: close\r\n` +
      `Service-Session-Token: ${world.admin.token}\r\n\r\n`,
  );
  const ended = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  await until(() => taken > MiB, { what: "the download to begin" });
  socket.pause();
  const growth = await measureGrowth(stage, () => Bun.sleep(still_ms));
  socket.resume();
  await ended;
  // Includes the head.
  const problems = taken < bytes || taken > bytes + 64 * 1024 ? [`${taken} of ${bytes} bytes came`] : [];
  assertNoProblems(seed, "a stalled download", [...growth.problems, ...problems]);
  return `a download of ${bytes / MiB} MiB that stood still for ${still_ms / 1000} s is complete, ${growth.summary}`;
};

/** How much is sent to stopped readers, and how long a download pauses. */
type Amount = { readonly bytes: number; readonly still_ms: number };
const LONG_DOWNLOAD: Amount = { bytes: 256 * MiB, still_ms: 30_000 };

/** `rounds` readers of each kind. */
export const checkStalledReaders = async (
  options: CheckOptions,
  { bytes, still_ms } = LONG_DOWNLOAD,
): Promise<string> => {
  const followers = await checkStalledFollowers(options, { open: startBehindSpare, bytes });
  const streams = await checkStalledEvents(options, { open: startBehindSpare, most: Math.max(bytes / 4, MIN_EVENTS) });
  return `behind a spare: ${followers}; ${streams}; ${await checkStalledDownload(options, { bytes, still_ms })}`;
};

export const checks: readonly Check[] = needs.postgres.found
  ? [{ name: "cluster: a reader that stops", run: (options) => checkStalledReaders(options) }]
  : [];
