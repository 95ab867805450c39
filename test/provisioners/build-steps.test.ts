// The limit of processes in a build's steps, with a fake engine that counts concurrent requests.
import { expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { BuildSteps } from "#src/provisioners/docker/build-steps.ts";
import { Engine } from "#src/provisioners/docker/engine.ts";
import { until } from "#test/support/until.ts";

type Container = { readonly name: string; limit: number };

const startEngine = () => {
  const containers = new Map<string, Container>();
  const requestStats = { concurrent: 0, maxConcurrent: 0, filters: new Set<string>() };
  const respond = async (request: Request): Promise<Response> => {
    const { pathname, searchParams } = new URL(request.url);
    const [, id = "", action = ""] = /^\/containers\/([^/]+)\/?(.*)$/.exec(pathname) ?? [];
    if (id === "json") {
      requestStats.filters.add(`${searchParams.get("all")} ${searchParams.get("filters")}`);
      return Response.json([...containers].map(([Id, { name }]) => ({ Id, Names: [name] })));
    }
    const found = containers.get(id);
    if (!found) return Response.json({ message: "no such container" }, { status: 404 });
    if (action === "update") found.limit = ((await request.json()) as { PidsLimit: number }).PidsLimit;
    return Response.json({ HostConfig: { PidsLimit: found.limit } });
  };
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      requestStats.maxConcurrent = Math.max(requestStats.maxConcurrent, ++requestStats.concurrent);
      try {
        return await respond(request);
      } finally {
        requestStats.concurrent--;
      }
    },
  });
  const engine = new Engine(`tcp://127.0.0.1:${server.port}`, systemClock);
  return { containers, requestStats, engine, [Symbol.dispose]: () => void server.stop(true) };
};

const makeStepLine = (id: number): string => ` ---> Running in ${String(id).padStart(12, "0")}\n`;

test("[RW-28] a step that imitates the engine's output does not prevent the limit of later steps", async () => {
  using world = startEngine();
  const steps = new BuildSteps(world.engine, "slipway-build-1");
  for (let step = 0; step < 3_000; step++) steps.onOutput(makeStepLine(step));
  world.containers.set("second", { name: "/happy_ant", limit: 0 });
  steps.onOutput(makeStepLine(9_999));
  await until(() => world.containers.get("second")?.limit === 4_096);
  expect(world.requestStats.maxConcurrent).toBe(1);
  expect([...world.requestStats.filters]).toEqual(['true {"network":["slipway-build-1"]}']);
});

test("[RW-28] in the shared network, keeps the limits of workspaces and stricter limits", async () => {
  using world = startEngine();
  world.containers.set("workspace", { name: "/slipway-1f-main", limit: 0 });
  world.containers.set("strict", { name: "/calm_bee", limit: 100 });
  world.containers.set("step", { name: "/happy_ant", limit: 0 });
  new BuildSteps(world.engine, "slipway").onOutput(makeStepLine(9_999));
  await until(() => world.containers.get("step")?.limit === 4_096);
  expect([...world.containers.values()].map(({ limit }) => limit)).toEqual([0, 100, 4_096]);
});
