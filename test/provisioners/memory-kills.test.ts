// Containers that the Docker Engine kills at their memory limit.
import { expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { Engine } from "#src/provisioners/docker/engine.ts";
import { followMemoryKills, KillPairs } from "#src/provisioners/docker/memory-kills.ts";
import type { ContainerKill } from "#src/provisioners/provisioner.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { until } from "#test/support/until.ts";

const WORKSPACE_ID = "6f1c9f0a-1111-4222-8333-444455556666";

const makeEvent = (Action: string, atMs: number, attributes: Record<string, string> = {}) => ({
  Action,
  timeNano: atMs * 1e6,
  Actor: {
    ID: "c1",
    Attributes: {
      name: `slipway-${WORKSPACE_ID}-db`,
      "slipway.workspace_id": WORKSPACE_ID,
      "slipway.resource": "db",
      ...attributes,
    },
  },
});

test("[AG-26] a container counts only if the engine reports its exit and a memory kill together, in either order", () => {
  const expected = { workspace_id: WORKSPACE_ID, resource: "db", killed_at: 1_000 };
  const exit = makeEvent("die", 1_000, { exitCode: "137" });
  const matchKills = (...events: object[]) => {
    const pairs = new KillPairs();
    return events.flatMap((event) => pairs.matchKill(event) ?? []);
  };
  expect(matchKills(makeEvent("oom", 990), exit)).toEqual([expected]);
  expect(matchKills(exit, makeEvent("oom", 1_020))).toEqual([expected]);
  // These do not count: a process killed long before the exit, a normal exit, an exit without a kill, a container without the name of a
  // workspace, and an event without attributes.
  expect(matchKills(makeEvent("oom", 990), makeEvent("die", 60_000, { exitCode: "137" }))).toEqual([]);
  expect(matchKills(makeEvent("oom", 990), makeEvent("die", 1_000, { exitCode: "0" }))).toEqual([]);
  expect(matchKills(exit)).toEqual([]);
  const otherName = { name: "amazing_chaum" };
  expect(
    matchKills(makeEvent("oom", 990, otherName), makeEvent("die", 1_000, { exitCode: "137", name: "amazing_chaum" })),
  ).toEqual([]);
  expect(matchKills({ Action: "oom", time: 1, Actor: { ID: "c1" } }, {})).toEqual([]);
});

testNeeding([needs.docker], "[AG-26] the engine reports a container that it killed at its memory limit", async () => {
  const engine = new Engine(needs.docker.file, systemClock);
  await engine.connect();
  const workspace_id = crypto.randomUUID();
  const body = {
    Image: "slipway-test:1",
    Cmd: ["tail", "/dev/zero"],
    Labels: { "slipway.workspace_id": workspace_id, "slipway.resource": "db" },
    HostConfig: { Memory: 16 * 1024 * 1024, MemorySwap: 16 * 1024 * 1024, Init: true },
  };
  const container = await engine.json<{ Id: string }>("create", "POST", "/containers/create", {
    query: { name: `slipway-${workspace_id}-db` },
    body,
  });
  const controller = new AbortController();
  const kills: ContainerKill[] = [];
  const recordKill = (kill: ContainerKill): unknown => kills.push(kill);
  const following = followMemoryKills({
    host: needs.docker.file,
    clock: systemClock,
    signal: controller.signal,
    onKill: recordKill,
  });
  await engine.json("start", "POST", `/containers/${container?.Id}/start`);
  const kill = await until(() => kills.find((kill) => kill.workspace_id === workspace_id));
  expect(kill.resource).toBe("db");
  controller.abort();
  await following;
  await engine.json("remove", "DELETE", `/containers/${container?.Id}`, { query: { force: "true" } });
});
