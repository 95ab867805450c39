// The short form of the tests that kill a whole server; `bun run torture` has the long one.
import { expect, test } from "bun:test";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { testSingleServer } from "#test/support/one-server.ts";
import { openStoredData, saveStoredData } from "#test/support/stored.ts";
import { until } from "#test/support/until.ts";
import { MANIFESTS } from "./oracle/build-load.ts";
import { findDatabaseProblems } from "./oracle/database.ts";
import { LineOracle } from "./oracle/log-lines.ts";
import { ServerSlot } from "./server.ts";
import { checkServerFailpoints, TESTED_FAILPOINTS } from "./server-failpoints.ts";
import { makeAgents, makeTemplate, makeWorkspace, makeWriters, signInAdmin, waitForBuild } from "./server-world.ts";

const SEED = Number(Bun.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);
const quiet = { seed: SEED, log: () => {} };

test(`[CR-4] killed at each failpoint, a server restarts immediately and has lost nothing (seed ${SEED})`, async () => {
  expect(await checkServerFailpoints({ ...quiet, rounds: 1 })).toContain(`${TESTED_FAILPOINTS.length} failpoints`);
});

testSingleServer("needsLocalServerProcess")(
  "[CR-3] a daemon whose record was lost when its server was killed is ended before a new daemon starts",
  async () => {
    await using slot = await ServerSlot.make();
    await slot.start();
    const world = await signInAdmin(slot);
    const template = await makeTemplate(world, "twice", MANIFESTS.local);
    const { id, latest_build } = await makeWorkspace(world.admin, "twice", template);
    const listDaemons = () =>
      slot.processes().filter((pid) => readFileSync(`/proc/${pid}/cmdline`, "latin1").includes("agent"));
    const [firstDaemon] = listDaemons();
    slot.currentProcess.kill("SIGKILL");
    await slot.currentProcess.ended;
    // The same state as after a kill directly after the spawn.
    rmSync(join(slot.directory, "workspaces", id, "daemon.json"));
    {
      await using stored = await openStoredData(slot.directory);
      await stored.run(`update jobs set completed_at = null where id = '${latest_build.job.id}'`);
    }
    await slot.start();
    expect((await waitForBuild(world.admin, latest_build.id)).job.status).toBe("succeeded");
    await until(async () => listDaemons().length === 1);
    expect(listDaemons()).not.toContain(firstDaemon);
  },
);

test("[CR-5] a batch with a lost response is resent under its key and stored once", async () => {
  await using slot = await ServerSlot.make();
  await slot.start();
  const world = await signInAdmin(slot);
  const [agent] = await makeAgents(world, "again", 1);
  const send = (key: string, output: string) =>
    agent?.client.fetch(
      "PATCH",
      "/api/v2/workspaceagents/me/logs",
      { logs: [{ output }] },
      { headers: { "Idempotency-Key": key } },
    );
  for (const key of ["a", "a", "b", "b", "b"]) expect((await send(key, key))?.status).toBe(200);
  await slot.stop();
  await slot.start();
  expect((await send("b", "b"))?.status).toBe(200);
  expect((await send("k".repeat(129), "c"))?.status).toBe(400);
  const logs = await world.admin.get<{ output: string }[]>(`/api/v2/workspaceagents/${agent?.agent_id}/logs`);
  expect(logs.map(({ output }) => output)).toEqual(["a", "b"]);
});

test("[CR-6] the oracle detects lost, duplicated, changed, reordered and truncated lines", async () => {
  await using slot = await ServerSlot.make();
  await slot.start();
  const world = await signInAdmin(slot);
  const writers = await makeWriters(await makeAgents(world, "oracle", 1), () => 0.5);
  for (let i = 0; i < 5; i++) await writers[0]?.sendOnce();
  await slot.stop();
  /** Returns what the oracles report about a database after this change. Then reverts the change. */
  const findProblemsAfter = async (
    sql: string,
    check = () => new LineOracle().check(world.admin, writers),
  ): Promise<string> => {
    const revert = await saveStoredData(slot.directory);
    {
      await using stored = await openStoredData(slot.directory);
      await stored.run(sql);
    }
    const databaseProblems = await findDatabaseProblems(slot.directory);
    await slot.start();
    const apiProblems = await check();
    await slot.stop();
    await revert();
    return [...databaseProblems, ...apiProblems].join("\n");
  };
  const lastId = "(select max(id) from agent_logs)";
  expect(await findProblemsAfter("update settings set value = value")).toBe("");
  expect(await findProblemsAfter(`delete from agent_logs where id = ${lastId}`)).toMatch(
    /bytes of the stored lines.*LOST.*incomplete/s,
  );
  expect(await findProblemsAfter(`delete from agent_logs where id = ${lastId} - 3`)).toContain("sent was");
  expect(await findProblemsAfter(`update agent_logs set output = 'other' where id = ${lastId}`)).toContain("sent was");
  expect(await findProblemsAfter(`update agent_logs set id = ${lastId} + 9 where id = ${lastId} - 3`)).toContain(
    "sent was",
  );
  expect(
    await findProblemsAfter(
      `insert into agent_logs select id + 99, agent, source, created_at, level, output from agent_logs where id = ${lastId}`,
    ),
  ).toContain("sent was");
  expect(await findProblemsAfter("update workspace_builds set build_number = 7")).toContain("build numbers with gaps");
  // The server repeats these builds, with new agents, so only the database is checked.
  expect(await findProblemsAfter("update jobs set completed_at = null", async () => [])).toBe("");
});
