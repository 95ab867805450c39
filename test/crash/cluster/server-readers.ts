// Readers behind a spare that stop reading while their stream continues: followers of a log (WebSockets), followers of a workspace (event
// streams), and a download from an app. Everything goes through the spare, so both nodes have to limit their buffers (CLUSTER check 7).
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
const WARM_UP_BYTES = 64 * MiB;
/** The kernel buffers so many bytes on two loopback connections before a stopped reader is noticed. */
const MIN_EVENT_BYTES = 32 * MiB;
/** Raises the limit for log lines beyond any test. */
const env = { SLIPWAY_AGENT_LOG_LIMIT: String(2 ** 36) };

/** Starts two nodes. All requests go to the spare. */
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

/** Checks a download whose reader pauses: nothing arrives in the meantime, and everything arrives in the end. */
const checkStalledDownload = async (
  { seed }: CheckOptions,
  { bytes, pause_ms }: { bytes: number; pause_ms: number },
) => {
  await using stage = await startBehindSpare();
  const { world } = stage;
  await using app = await startWorkspaceApp(world);
  await until(async () => (await download(world, app.url, WARM_UP_BYTES)) === 200, { what: "a first download" });
  const { url } = world.admin;
  const socket = connect(Number(url.port), url.hostname);
  let receivedBytes = 0;
  socket.on("data", (chunk: Buffer) => {
    receivedBytes += chunk.byteLength;
  });
  socket.write(
    `GET ${app.url.pathname}?n=${bytes} HTTP/1.1\r\nHost: ${url.host}\r\nConnection: close\r\n` +
      `Service-Session-Token: ${world.admin.token}\r\n\r\n`,
  );
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  await until(() => receivedBytes > MiB, { what: "the download to begin" });
  socket.pause();
  const growth = await measureGrowth(stage, () => Bun.sleep(pause_ms));
  socket.resume();
  await closed;
  // The response's head is included.
  const problems =
    receivedBytes < bytes || receivedBytes > bytes + 64 * 1024 ? [`${receivedBytes} of ${bytes} bytes arrived`] : [];
  assertNoProblems(seed, "a stalled download", [...growth.problems, ...problems]);
  return `a download of ${bytes / MiB} MiB that was paused for ${pause_ms / 1000} s is complete, ${growth.summary}`;
};

/** How much is sent to stopped readers, and how long a download pauses. */
type Amount = { readonly bytes: number; readonly pause_ms: number };
const LONG_DOWNLOAD: Amount = { bytes: 256 * MiB, pause_ms: 30_000 };

/** Checks `rounds` readers of each kind. */
export const checkStalledReaders = async (
  options: CheckOptions,
  { bytes, pause_ms } = LONG_DOWNLOAD,
): Promise<string> => {
  const followers = await checkStalledFollowers(options, { open: startBehindSpare, bytes });
  const streams = await checkStalledEvents(options, {
    open: startBehindSpare,
    eventBytes: Math.max(bytes / 4, MIN_EVENT_BYTES),
  });
  return `behind a spare: ${followers}; ${streams}; ${await checkStalledDownload(options, { bytes, pause_ms })}`;
};

export const checks: readonly Check[] = needs.postgres.found
  ? [{ name: "cluster: a reader that stops", run: (options) => checkStalledReaders(options) }]
  : [];
