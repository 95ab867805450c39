// The networks of image builds, with a fake engine that refuses the same requests as a real one.
import { afterAll, beforeEach, expect, test } from "bun:test";
import { withBuildNetwork } from "#src/provisioners/docker/build-network.ts";
import { Engine } from "#src/provisioners/docker/engine.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { until } from "#test/support/until.ts";

const clock = new ManualClock();
const hoursAgo = (hours: number): string => new Date(clock.now() - hours * 3_600_000).toISOString();
let requests: string[] = [];
let networks = new Map<string, string>();
let isFull = false;
/** How often the engine still refuses to remove a network, because a step's container uses it. */
let refusalsLeft = 0;
let onCreate = (): void => {};
beforeEach(() => {
  requests = [];
  networks = new Map();
  isFull = false;
  refusalsLeft = 0;
  onCreate = () => {};
});

const refuse = (status: number, message: string): Response => Response.json({ message }, { status });

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: async (request) => {
    const { pathname } = new URL(request.url);
    const { Name = "" } = request.method === "POST" ? ((await request.json()) as { Name?: string }) : {};
    requests.push(`${request.method} ${pathname} ${Name}`.trim());
    if (pathname === "/networks") return Response.json([...networks].map(([Name, Created]) => ({ Name, Created })));
    if (request.method === "POST") {
      if (isFull && Name !== "slipway")
        return refuse(404, "could not find an available, non-overlapping IPv4 address pool");
      networks.set(Name, hoursAgo(0));
      onCreate();
      return Response.json({ Id: "made" });
    }
    const name = pathname.replace("/networks/", "");
    if (!networks.has(name)) return refuse(404, `network ${name} not found`);
    if (request.method === "GET") return Response.json({ Name: name });
    if (refusalsLeft-- > 0) return refuse(403, `error while removing network: network ${name} has active endpoints`);
    networks.delete(name);
    return new Response(null, { status: 204 });
  },
});
afterAll(() => server.stop(true));

const build = async (
  work: (network: string) => Promise<void> = async () => {},
  { signal } = new AbortController(),
): Promise<string> => {
  let usedNetwork = "";
  const engine = new Engine(`tcp://${server.hostname}:${server.port}`, clock);
  await withBuildNetwork({ engine, clock, signal }, async (network) => {
    usedNetwork = network;
    await work(network);
  });
  return usedNetwork;
};

const countRemovals = (): number => requests.filter((line) => line.startsWith("DELETE")).length;

test("[RW-26] each build has its own network, which is removed afterwards, like the networks of killed builds", async () => {
  networks = new Map([
    ["old", hoursAgo(3)],
    ["running", hoursAgo(0.5)],
  ]);
  const first = await build();
  expect(requests.slice(0, 3)).toEqual(["GET /networks", "DELETE /networks/old", `POST /networks/create ${first}`]);
  await until(() => networks.size === 1 && networks.has("running"));
  const failingBuild = build(async (second) => {
    expect(second).not.toBe(first);
    throw new Error("the step failed");
  });
  await expect(failingBuild).rejects.toThrow("the step failed");
  await until(() => networks.size === 1);
});

test("[RW-26] removes a network that a canceled step still uses once the step has ended", async () => {
  refusalsLeft = 2;
  const controller = new AbortController();
  const building = build(async () => controller.abort(new Error("canceled")), controller);
  await building;
  for (const [attempts, delay] of [1_000, 2_000].entries()) {
    await until(() => countRemovals() === attempts + 1);
    await clock.timerIn(delay);
    expect(networks.size).toBe(1);
    clock.advance(delay);
  }
  await until(() => networks.size === 0);
});

test("[RW-26] the next build removes a network that the engine does not remove within two minutes", async () => {
  refusalsLeft = 8;
  await build();
  for (let delay = 1_000; delay <= 64_000; delay *= 2) {
    await clock.timerIn(delay);
    clock.advance(delay);
  }
  await until(() => countRemovals() === 8);
  expect(networks.size).toBe(1);
  await build(async (network) => expect([...networks.keys()]).toEqual([network]));
  await until(() => networks.size === 0);
});

test("[RW-26] a build that is canceled during the creation of its network leaves none behind", async () => {
  const controller = new AbortController();
  onCreate = () => controller.abort(new Error("canceled"));
  let isBuilt = false;
  const building = build(async () => {
    isBuilt = true;
  }, controller);
  await expect(building).rejects.toThrow("canceled");
  await until(() => networks.size === 0);
  expect(isBuilt).toBe(false);
});

test("[RW-26] without free addresses for a network, a build uses the isolated network", async () => {
  isFull = true;
  expect(await build()).toBe("slipway");
  expect(requests.slice(-2)).toEqual(["GET /networks/slipway", "POST /networks/create slipway"]);
});
