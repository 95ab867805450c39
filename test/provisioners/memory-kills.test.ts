// Containers that a genuine engine kills at their memory limit.
import { expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { Engine } from "#src/provisioners/docker/engine.ts";
import { followMemoryKills, KillPairs } from "#src/provisioners/docker/memory-kills.ts";
import type { ContainerKill } from "#src/provisioners/provisioner.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { until } from "#test/support/until.ts";

const WORKSPACE = "6f1c9f0a-1111-4222-8333-444455556666";

const event = (Action: string, at: number, more: Record<string, string> = {}) => ({
  Action,
  timeNano: at * 1e6,
  Actor: {
    ID: "c1",
    Attributes: {
      name: `slipway-${WORKSPACE}-db`,
      "slipway.workspace_id": WORKSPACE,
      "slipway.resource": "db",
      ...more,
    },
  },
});

test("[AG-26] a container counts only if its exit and its kill are reported together, in either order", () => {
  const killed = { workspace_id: WORKSPACE, resource: "db", killed_at: 1_000 };
  const end = event("die", 1_000, { exitCode: "137" });
  const play = (...events: object[]) => {
    const pairs = new KillPairs();
    return events.flatMap((one) => pairs.matchKill(one) ?? []);
  };
  expect(play(event("oom", 990), end)).toEqual([killed]);
  expect(play(end, event("oom", 1_020))).toEqual([killed]);
  // Not counted: a process killed long before, a normal exit, a stop, no workspace, or a workspace only in the label.
  expect(play(event("oom", 990), event("die", 60_000, { exitCode: "137" }))).toEqual([]);
  expect(play(event("oom", 990), event("die", 1_000, { exitCode: "0" }))).toEqual([]);
  expect(play(end)).toEqual([]);
  const foreign = { name: "amazing_chaum" };
  expect(play(event("oom", 990, foreign), event("die", 1_000, { exitCode: "137", name: "amazing_chaum" }))).toEqual([]);
  expect(play({ Action: "oom", time: 1, Actor: { ID: "c1" } }, {})).toEqual([]);
});

testNeeding([needs.docker], "[AG-26] the engine reports a container that was killed for memory", async () => {
  const engine = new Engine(needs.docker.file, systemClock);
  await engine.connect();
  const workspace_id = crypto.randomUUID();
  const body = {
    Image: "slipway-test:1",
    Cmd: ["tail", "/dev/zero"],
    Labels: { "slipway.workspace_id": workspace_id, "slipway.resource": "db" },
    HostConfig: { Memory: 16 * 1024 * 1024, MemorySwap: 16 * 1024 * 1024, Init: true },
  };
  const created = await engine.json<{ Id: string }>("create", "POST", "/containers/create", {
    query: { name: `slipway-${workspace_id}-db` },
    body,
  });
  const end = new AbortController();
  const kills: ContainerKill[] = [];
  const killed = (kill: ContainerKill): unknown => kills.push(kill);
  const following = followMemoryKills({
    host: needs.docker.file,
    clock: systemClock,
    signal: end.signal,
    onKill: killed,
  });
  await engine.json("start", "POST", `/containers/${created?.Id}/start`);
  const kill = await until(() => kills.find((one) => one.workspace_id === workspace_id));
  expect(kill.resource).toBe("db");
  end.abort();
  await following;
  await engine.json("remove", "DELETE", `/containers/${created?.Id}`, { query: { force: "true" } });
});
