// The effects of an agent's disk and memory reports: levels, the last processes, and notifications.
import { expect, test } from "bun:test";
import { buildResourceNotices, mergeResources } from "#actors/agent/resources.ts";
import { findSpaceLevel } from "#schema/agents/resources.ts";

const GIB = 2 ** 30;
const HOUR_MS = 3_600_000;
const makeHome = (used_bytes: number, total_bytes = 100 * GIB) => ({ path: "/home/ada", used_bytes, total_bytes });
const workspace = { id: "w", owner_id: "ada", name: "dev" };

test("[AG-25] a disk is low with less than 1 GiB or 10 % free, full with less than 64 MiB or 1 % free; a level ends at 1.5 times its limit", () => {
  const findLevel = (free: number, total: number, before?: "ok" | "low" | "full") =>
    findSpaceLevel({ used: total - free, total }, before);
  expect([findLevel(2 * GIB, 100 * GIB), findLevel(0.9 * GIB, 100 * GIB), findLevel(0.06 * GIB, 100 * GIB)]).toEqual([
    "ok",
    "low",
    "full",
  ]);
  expect([findLevel(11, 100), findLevel(9, 100), findLevel(0, 100)]).toEqual(["ok", "low", "full"]);
  expect([findLevel(14, 100, "low"), findLevel(15, 100, "low"), findLevel(1.2, 100, "full")]).toEqual([
    "low",
    "ok",
    "full",
  ]);
});

test("[AG-25] the last five killed processes are kept, newest first, even when a report names none", () => {
  const makeKill = (n: number) => ({ process: `job ${n}`, killed_at: n * 1000 });
  const first = mergeResources(null, { memory_kills: [1, 2, 3].map(makeKill) }, 9_000);
  const second = mergeResources(first, { home: makeHome(GIB), memory_kills: [4, 5, 6].map(makeKill) }, 10_000);
  const last = mergeResources(second, { memory_kills: [] }, 11_000);
  expect(last.memory_kills.map(({ process }) => process)).toEqual(["job 6", "job 5", "job 4", "job 3", "job 2"]);
  expect(last.home).toBeUndefined();
  expect(last.reported_at).toBe("1970-01-01T00:00:11.000Z");
});

test("[AG-25] the owner is notified when a level gets worse and when processes are killed, at most once an hour", () => {
  let before: ReturnType<typeof mergeResources> | null = null;
  const report = (used: number, processes: string[], now: number) => {
    const message = { home: makeHome(used), memory_kills: processes.map((process) => ({ process, killed_at: now })) };
    const next = mergeResources(before, message, now);
    const notices = buildResourceNotices(workspace, before, next, message, now);
    before = next;
    return notices.map(({ rows }) => (rows?.[0] ?? []).filter((_, index) => [1, 4, 5, 8].includes(index)));
  };
  expect(report(50 * GIB, [], 0)).toEqual([]);
  expect(report(99.5 * GIB, [], 1)).toEqual([
    [
      "ada",
      "The disk of dev is almost full",
      "99.5 GiB of 100.0 GiB are used in /home/ada. Delete files that you no longer need.",
      "disk_low:w:0",
    ],
  ]);
  expect(report(99.6 * GIB, [], 2)).toEqual([]);
  expect(report(100 * GIB, ["npm run build", "", "npm run build"], 3)).toEqual([
    [
      "ada",
      "The disk of dev is full",
      "100.0 GiB of 100.0 GiB are used in /home/ada. Delete files that you no longer need.",
      "disk_full:w:0",
    ],
    [
      "ada",
      "dev ran out of memory",
      "The kernel killed npm run build, a process. Run fewer programs at a time, or give the workspace more memory.",
      "memory:w:0",
    ],
  ]);
  expect(report(50 * GIB, [], 4)).toEqual([]);
  expect(report(100 * GIB, [], HOUR_MS)[0]?.[3]).toBe("disk_full:w:1");
});
