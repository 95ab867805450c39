// Nodes that are all active, on a real PostgreSQL: who has which parts when nodes come, go, die and come back.
import { afterEach, expect } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { PARTS } from "#base/parts.ts";
import { PartsMember } from "#db/pg/parts/member.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createDatabase, type TestDatabase } from "#test/support/postgres.ts";
import { until } from "#test/support/until.ts";

const LEASE_MS = 2000;
const members: PartsMember[] = [];
let database: TestDatabase | undefined;
afterEach(async () => {
  for (const member of members.splice(0)) await member.leave();
  await database?.remove();
});

/** A member, and what its handler was asked, in order. */
const join = async (id: string, { clock = systemClock, fatal = (_: Error): void => {} } = {}) => {
  database ??= await createDatabase();
  const { url } = database;
  const member = await PartsMember.join({ url, id, version: "1", lease_ms: LEASE_MS, clock, fatal });
  members.push(member);
  const asked: string[] = [];
  member.onMoves({
    adopt: async (parts) => {
      asked.push(`adopt ${parts.length}`);
      expect(parts.every((part) => member.has(part))).toBe(true);
    },
    leave: async (parts) => {
      asked.push(`leave ${parts.length}`);
      expect(parts.some((part) => member.has(part))).toBe(false);
    },
  });
  return { member, asked };
};

const countsAre =
  (...counts: number[]) =>
  () =>
    members.map(({ count }) => count).join() === counts.join();

testNeeding(
  [needs.postgres],
  "[CP-7] the first node has all parts at once, and gives of them to those who come until all have the same",
  async () => {
    const a = await join("a:1");
    expect([a.member.count, a.member.isFirst, a.asked]).toEqual([PARTS, true, ["adopt 256"]]);
    const b = await join("b:1");
    await until(countsAre(128, 128));
    expect([a.asked, b.asked[0]?.startsWith("adopt")]).toEqual([
      ["adopt 256", "leave 32", "leave 32", "leave 32", "leave 32"],
      true,
    ]);
    await join("c:1");
    await until(() => members.every(({ count }) => count === 85 || count === 86));
  },
  60_000,
);
