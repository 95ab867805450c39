// The networks of image builds, at an engine that records what it is asked.
import { afterAll, beforeEach, expect, test } from "bun:test";
import { Engine } from "#src/provisioners/docker/engine.ts";
import { withBuildNetwork } from "#src/provisioners/docker/network.ts";
import { ManualClock } from "#test/support/manual-clock.ts";

const clock = new ManualClock();
const hoursAgo = (hours: number): string => new Date(clock.now() - hours * 3_600_000).toISOString();
let asked: string[] = [];
let isFull = false;
beforeEach(() => {
  asked = [];
  isFull = false;
});

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: async (request) => {
    const { pathname, search } = new URL(request.url);
    const path = `${pathname}${search}`;
    const { Name = "" } = request.method === "POST" ? ((await request.json()) as { Name?: string }) : {};
    asked.push(`${request.method} ${path.startsWith("/networks?") ? "/networks" : path} ${Name}`.trim());
    if (path.startsWith("/networks?")) {
      return Response.json([
        { Id: "old", Created: hoursAgo(4) },
        { Id: "running", Created: hoursAgo(0.5) },
      ]);
    }
    if (isFull && request.method === "POST" && Name !== "slipway") {
      return Response.json(
        { message: "could not find an available, non-overlapping IPv4 address pool" },
        { status: 404 },
      );
    }
    if (request.method === "GET") return Response.json({ message: "no such network" }, { status: 404 });
    return Response.json({ Id: "made" });
  },
});
afterAll(() => server.stop(true));

const build = async (work: (network: string) => Promise<void> = async () => {}): Promise<string> => {
  let used = "";
  const engine = new Engine(`tcp://${server.hostname}:${server.port}`, clock);
  await withBuildNetwork({ engine, clock, signal: new AbortController().signal }, async (network) => {
    used = network;
    await work(network);
  });
  return used;
};

test("[RW-26] each build has a network of its own, which goes with it, as do those of builds that were killed", async () => {
  const first = await build();
  expect(asked).toEqual([
    "GET /networks",
    "DELETE /networks/old",
    `POST /networks/create ${first}`,
    `DELETE /networks/${first}`,
  ]);
  const fails = build(() => Promise.reject(new Error("the step failed")));
  await expect(fails).rejects.toThrow("the step failed");
  expect(asked.at(-1)).toMatch(/^DELETE \/networks\/slipway-build-/);
  expect(asked.at(-1)).not.toContain(first);
});

test("[RW-26] without addresses for a network, a build uses the one in which containers are isolated", async () => {
  isFull = true;
  expect(await build()).toBe("slipway");
  expect(asked.slice(-2)).toEqual(["GET /networks/slipway", "POST /networks/create slipway"]);
});
