// The server as its owners see it: log and backups, without mocks.
import { expect, test } from "bun:test";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { configureLogging, log, resetLogging } from "#base/log.ts";
import { RecentLog } from "#base/recent-log.ts";
import type { Backups } from "#schema/administration/backup.ts";
import type { ServerLog, ServerLogLine } from "#schema/administration/server-log.ts";
import type { ClientSocket } from "#src/client.ts";
import { serverForFile } from "#test/support/for-file.ts";
import { testInside } from "#test/support/inside.ts";
import { testSingleServer } from "#test/support/one-server.ts";
import { newPerson } from "../users/people.ts";

const { admin: owner } = await serverForFile();

/** Returns the first matching message, skipping pings. */
const message = async <T>(socket: ClientSocket, fits: (one: T) => boolean): Promise<T> => {
  for (;;) {
    const one = await socket.json<T & { type?: string }>();
    if (one.type !== "ping" && fits(one)) return one;
  }
};

test("[AD-3] the newest lines are kept within bounds", () => {
  const recentLog = new RecentLog();
  for (let at = 1; at <= 2_500; at++) recentLog.add({ at, level: "info", area: "db", text: `line ${at}` });
  expect(recentLog.listAfter(0, 10_000).map(({ id }) => id)).toHaveLength(2_000);
  expect(recentLog.listAfter(2_499, 10)).toMatchObject([{ id: 2_500, text: "line 2500" }]);
  recentLog.add({ at: 1, level: "info", area: "db", text: "x".repeat(100_000) });
  expect(recentLog.listAfter(2_500, 1)[0]?.text.length).toBeLessThan(10_000);
});

test("[AD-3] lines crafted to be expensive are read as fast as others", () => {
  const recentLog = new RecentLog();
  const dear = ["a".repeat(9_000), "a.".repeat(4_500), "--key-".repeat(1_500), "eyJ".repeat(3_000)];
  for (let at = 0; at < 500; at++)
    recentLog.add({ at, level: "info", area: "http", text: dear[at % dear.length] ?? "" });
  const started = performance.now();
  expect(recentLog.listAfter(0, 500)).toHaveLength(500);
  // With quadratic time it would be half a minute.
  expect(performance.now() - started).toBeLessThan(5_000);
});

testInside(
  "[AD-3] [AD-2] the log is read by level and text and followed, without secrets, until the caller is no longer an owner",
  async () => {
    configureLogging({ level: "info", format: "text", write: () => {} });
    try {
      log("db").info("the first boat", { token: "abcdefghijklmnop", by: "ada@example.com" });
      log("http").error("the second boat is late");
      const { lines } = await owner.get<ServerLog>("/api/v2/deployment/logs?search=BOAT");
      expect(lines.map(({ level, area, text }) => [level, area, text])).toEqual([
        ["info", "db", "the first boat token=(hidden) by=(email)"],
        ["error", "http", "the second boat is late"],
      ]);
      const worse = await owner.get<ServerLog>("/api/v2/deployment/logs?level=warn&search=boat");
      expect(worse.lines).toHaveLength(1);
      expect((await owner.fetch("GET", "/api/v2/deployment/logs?level=loud")).status).toBe(400);

      const helper = await newPerson(owner, "helper", ["owner"]);
      const last = lines.at(-1)?.id;
      using socket = await helper.client.socket(`/api/v2/deployment/logs/watch?after_id=${last}&search=boat`);
      log("db").warn("the third boat");
      const received = await message<ServerLogLine[]>(socket, () => true);
      expect(received).toMatchObject([{ level: "warn", text: "the third boat" }]);
      await owner.put(`/api/v2/users/${helper.user.id}/roles`, { roles: [] });
      expect((await socket.closed).code).toBe(1008);
    } finally {
      resetLogging();
    }
  },
);

testSingleServer("sqlite")(
  "[AD-4] a backup is created and verified while the server runs; a damaged one is detected",
  async () => {
    using socket = await owner.socket("/api/v2/deployment/backups/watch");
    expect(await message<Backups>(socket, () => true)).toMatchObject({ backups: [], work: null });
    const started = await owner.post<Backups>("/api/v2/deployment/backups");
    expect(started.work).toMatchObject({ kind: "make", name: "" });
    expect((await owner.fetch("POST", "/api/v2/deployment/backups")).status).toBe(409);
    const created = await message<Backups>(socket, ({ work, backups }) => work === null && backups.length > 0);
    const [backup] = created.backups;
    expect(backup).toMatchObject({ problem: "", checked_at: null });
    expect(backup?.bytes).toBeGreaterThan(10_000);

    const path = `/api/v2/deployment/backups/${backup?.name}/check`;
    await owner.post(path);
    const checked = await message<Backups>(socket, ({ work, backups }) => !work && backups[0]?.checked_at !== null);
    expect([checked.failure, checked.backups[0]?.problem]).toEqual(["", ""]);

    writeFileSync(join(created.folder, backup?.name ?? "", "slipway.db"), "no database");
    await owner.post(path);
    const damaged = await message<Backups>(socket, ({ work, failure }) => work === null && failure !== "");
    expect(damaged.backups[0]?.problem).not.toBe("");
    expect(readdirSync(created.folder).filter((name) => name.startsWith(".check-"))).toEqual([]);
    expect((await owner.fetch("POST", "/api/v2/deployment/backups/..%2f..%2fetc/check")).status).toBe(404);
  },
);
