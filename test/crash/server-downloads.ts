// A large download from a workspace's app, through a daemon and the app proxy: every byte arrives, and the server's memory does not grow
// (RELIABILITY check 15 for bodies; rule AX-15).
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startApp } from "#test/api/applications/app-world.ts";
import { until } from "#test/support/until.ts";
import { measureGrowth, startOneServer } from "./reader-stage.ts";
import { command } from "./server.ts";
import { assertNoProblems } from "./server-crash.ts";
import { makeAgents, type World } from "./server-world.ts";
import type { Check, CheckOptions } from "./store/store-crash.ts";

const MiB = 1024 * 1024;
const DOWNLOAD_BYTES = 2048 * MiB;
const WARM_UP_BYTES = 64 * MiB;

/** Starts an app of a workspace with a daemon that connects to the same server as the world's clients. */
export const startWorkspaceApp = async (world: World): Promise<AsyncDisposable & { url: URL; daemon: number }> => {
  const [agent] = await makeAgents(world, "downloads", 1);
  if (!agent) throw new Error("no agent was made");
  const app = await startApp();
  const home = mkdtempSync(join(tmpdir(), "slipway-home-"));
  const daemon = Bun.spawn([...command(), "agent"], {
    env: {
      PATH: Bun.env.PATH ?? "",
      HOME: home,
      TMPDIR: home,
      SHELL: "/bin/sh",
      SLIPWAY_AGENT_TOKEN: agent.client.token ?? "",
      SLIPWAY_AGENT_URL: world.admin.url.href,
    },
    stdio: ["ignore", "ignore", "ignore"],
  });
  const workspace = await world.admin.get<{ name: string }>(`/api/v2/workspaces/${agent.workspace_id}`);
  return {
    url: new URL(`/@me/${workspace.name}.agent-0/apps/${app.port}/bytes`, world.admin.url),
    daemon: daemon.pid,
    async [Symbol.asyncDispose]() {
      daemon.kill("SIGTERM");
      await daemon.exited;
      await app[Symbol.asyncDispose]();
      rmSync(home, { recursive: true, force: true });
    },
  };
};

/** Downloads this many bytes and returns the status. */
export const download = async (world: World, url: URL, bytes: number): Promise<number> => {
  const headers = { "Service-Session-Token": world.admin.token ?? "" };
  const response = await fetch(`${url}?n=${bytes}`, { headers });
  if (response.status !== 200) return response.status;
  let size = 0;
  for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) size += part.byteLength;
  if (size !== bytes) throw new Error(`${size} of ${bytes} bytes arrived`);
  return 200;
};

/** Downloads 2 GiB `rounds` times, one download after the other. */
export const checkDownloads = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  await using stage = await startOneServer();
  const { world } = stage;
  await using app = await startWorkspaceApp(world);
  await until(async () => (await download(world, app.url, WARM_UP_BYTES)) === 200);
  const growth = await measureGrowth(stage, async () => {
    for (let round = 0; round < rounds; round += 1) {
      const status = await download(world, app.url, DOWNLOAD_BYTES);
      if (status !== 200) throw new Error(`a download failed with status ${status}`);
      log(`download ${round + 1} is complete`);
    }
  });
  assertNoProblems(seed, "downloads", growth.problems);
  return `${rounds} downloads of 2 GiB are complete, ${growth.summary}`;
};

export const checks: readonly Check[] = [{ name: "server: downloads of apps", run: checkDownloads }];
