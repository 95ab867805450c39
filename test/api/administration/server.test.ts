// The server's log and backups, as its owners see them.
import { expect, test } from "bun:test";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { configureLogging, log, resetLogging } from "#base/log.ts";
import { RecentLog } from "#base/recent-log.ts";
import type { Backups } from "#schema/administration/backup.ts";
import type { ServerLog, ServerLogLine } from "#schema/administration/server-log.ts";
import type { ClientSocket } from "#src/client.ts";
import { serverForFile } from "#test/support/for-file.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { testSingleServer } from "#test/support/one-server.ts";
import { newPerson } from "../users/people.ts";

const { admin: owner } = await serverForFile();

/** Returns the first matching message, skipping pings. */
const nextMessage = async <T>(socket: ClientSocket, matches: (message: T) => boolean = () => true): Promise<T> => {
  for (;;) {
    const message = await socket.json<T & { type?: string }>();
    if (message.type !== "ping" && matches(message)) return message;
  }
};

test("[AD-3] keeps the newest lines within bounds", () => {
  const recentLog = new RecentLog();
  for (let at = 1; at <= 2_500; at++) recentLog.add({ at, level: "info", area: "db", text: `line ${at}` });
  expect(recentLog.listAfter(0, 10_000).map(({ id }) => id)).toHaveLength(2_000);
  expect(recentLog.listAfter(2_499, 10)).toMatchObject([{ id: 2_500, text: "line 2500" }]);
  recentLog.add({ at: 1, level: "info", area: "db", text: "x".repeat(100_000) });
  expect(recentLog.listAfter(2_500, 1)[0]?.text.length).toBeLessThan(10_000);
});

test("[AD-3] reads lines crafted to be expensive as fast as others", () => {
  const recentLog = new RecentLog();
  const expensiveTexts = ["a".repeat(9_000), "a.".repeat(4_500), "--key-".repeat(1_500), "eyJ".repeat(3_000)];
  for (let at = 0; at < 500; at++)
    recentLog.add({ at, level: "info", area: "http", text: expensiveTexts[at % expensiveTexts.length] ?? "" });
  const started = performance.now();
  expect(recentLog.listAfter(0, 500)).toHaveLength(500);
  // Quadratic time would take half a minute.
  expect(performance.now() - started).toBeLessThan(5_000);
});

testInProcess(
  "[AD-3] [AD-2] an owner filters and follows the log without secrets, until they lose the role",
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
      const warnings = await owner.get<ServerLog>("/api/v2/deployment/logs?level=warn&search=boat");
      expect(warnings.lines).toHaveLength(1);
      expect((await owner.fetch("GET", "/api/v2/deployment/logs?level=loud")).status).toBe(400);

      const helper = await newPerson(owner, "helper", ["owner"]);
      const last = lines.at(-1)?.id;
      using socket = await helper.client.socket(`/api/v2/deployment/logs/watch?after_id=${last}&search=boat`);
      log("db").warn("the third boat");
      const received = await nextMessage<ServerLogLine[]>(socket);
      expect(received).toMatchObject([{ level: "warn", text: "the third boat" }]);
      await owner.put(`/api/v2/users/${helper.user.id}/roles`, { roles: [] });
      expect((await socket.closed).code).toBe(1008);
    } finally {
      resetLogging();
    }
  },
);

testSingleServer("sqlite")(
  "[AD-4] creates and verifies a backup while the server runs, and detects a damaged one",
  async () => {
    using socket = await owner.socket("/api/v2/deployment/backups/watch");
    expect(await nextMessage<Backups>(socket)).toMatchObject({ backups: [], work: null });
    const started = await owner.post<Backups>("/api/v2/deployment/backups");
    expect(started.work).toMatchObject({ kind: "make", name: "" });
    expect((await owner.fetch("POST", "/api/v2/deployment/backups")).status).toBe(409);
    const created = await nextMessage<Backups>(socket, ({ work, backups }) => work === null && backups.length > 0);
    const [backup] = created.backups;
    expect(backup).toMatchObject({ problem: "", checked_at: null });
    expect(backup?.bytes).toBeGreaterThan(10_000);

    const path = `/api/v2/deployment/backups/${backup?.name}/check`;
    await owner.post(path);
    const checked = await nextMessage<Backups>(socket, ({ work, backups }) => !work && backups[0]?.checked_at !== null);
    expect([checked.failure, checked.backups[0]?.problem]).toEqual(["", ""]);

    writeFileSync(join(created.folder, backup?.name ?? "", "slipway.db"), "no database");
    await owner.post(path);
    const damaged = await nextMessage<Backups>(socket, ({ work, failure }) => work === null && failure !== "");
    expect(damaged.backups[0]?.problem).not.toBe("");
    expect(readdirSync(created.folder).filter((name) => name.startsWith(".check-"))).toEqual([]);
    expect((await owner.fetch("POST", "/api/v2/deployment/backups/..%2f..%2fetc/check")).status).toBe(404);
  },
);
