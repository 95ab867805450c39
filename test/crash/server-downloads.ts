// A large download from an app of a workspace, through a daemon and the app proxy: every byte comes, and the server's memory stays as
// it was (RELIABILITY check 15 for bodies; rule AX-15).
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startApp } from "#test/api/applications/app-world.ts";
import { until } from "#test/support/until.ts";
import { command, ServerPlace } from "./server.ts";
import { enter, makeAgents } from "./server-world.ts";
import type { Check, CheckOptions } from "./store/store-crash.ts";

const MiB = 1024 * 1024;
const DOWNLOAD = 2048 * MiB;
const WARM = 64 * MiB;
/** Windows and buffers on the way, and what the runtime has not given back yet. */
const BOUND = 100 * MiB;
const LOOK_MS = 20;

/** `rounds` downloads of 2 GiB, one after the other. */
export const downloads = async ({ rounds, log }: CheckOptions): Promise<string> => {
  await using place = await ServerPlace.make();
  const server = await place.start();
  const world = await enter(place);
  const [agent] = await makeAgents(world, "downloads", 1);
  if (!agent) throw new Error("no agent was made");
  await using app = await startApp();
  const home = mkdtempSync(join(tmpdir(), "slipway-home-"));
  const daemon = Bun.spawn([...command(), "agent"], {
    env: {
      PATH: Bun.env.PATH ?? "",
      HOME: home,
      TMPDIR: home,
      SHELL: "/bin/sh",
      SLIPWAY_AGENT_TOKEN: agent.client.token ?? "",
      SLIPWAY_AGENT_URL: place.client.url.href,
    },
    stdio: ["ignore", "ignore", "ignore"],
  });
  try {
    const workspace = await world.admin.get<{ name: string }>(`/api/v2/workspaces/${agent.workspace_id}`);
    const url = new URL(`/@me/${workspace.name}.agent-0/apps/${app.port}/bytes`, place.client.url);
    const headers = { "Service-Session-Token": world.admin.token ?? "" };
    const download = async (bytes: number): Promise<number> => {
      const response = await fetch(`${url}?n=${bytes}`, { headers });
      if (response.status !== 200) return response.status;
      let size = 0;
      for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) size += part.byteLength;
      if (size !== bytes) throw new Error(`${size} of ${bytes} bytes came`);
      return 200;
    };
    await until(async () => (await download(WARM)) === 200);
    const before = server.rss();
    let peak = before;
    const looking = setInterval(() => {
      peak = Math.max(peak, server.rss());
    }, LOOK_MS);
    try {
      for (let round = 0; round < rounds; round += 1) {
        const status = await download(DOWNLOAD);
        if (status !== 200) throw new Error(`a download was answered ${status}`);
        log(`download ${round + 1}: memory at most ${Math.round((peak - before) / MiB)} MiB more`);
      }
    } finally {
      clearInterval(looking);
    }
    const more = Math.round((peak - before) / MiB);
    if (peak - before > BOUND) throw new Error(`the server's memory grew by ${more} MiB`);
    return `${rounds} downloads of 2 GiB came whole, memory at most ${more} MiB more`;
  } finally {
    daemon.kill("SIGTERM");
    await daemon.exited;
    rmSync(home, { recursive: true, force: true });
  }
};

export const checks: readonly Check[] = [{ name: "server: downloads of apps", run: downloads }];
