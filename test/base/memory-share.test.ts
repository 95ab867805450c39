import { expect, test } from "bun:test";
import { MemoryShare } from "#base/system/memory-share.ts";

const LIMITS = { total: 1_024, each: 512 };
const never = new AbortController().signal;

/** Takes memory from the share, and notes in `log` when it is available. */
const makeTakes = (share: MemoryShare) => {
  const log: string[] = [];
  const take = async (holder: string, bytes: number, signal = never) => {
    const hold = await share.take(holder, bytes, signal);
    log.push(`${holder} ${bytes}`);
    return hold;
  };
  return { log, take };
};

test("[CH-54] large pieces wait in turns by person, and one person has half of the share", async () => {
  const share = new MemoryShare(LIMITS);
  const { log, take } = makeTakes(share);
  const first = await take("ann", 400);
  const rest = [take("ann", 300), take("ann", 301), take("bob", 500), take("cat", 200), take("bob", 100)];
  await rest[2];
  // Ann's second piece is above her half, and Cat's is next: hers fits only when Ann's first has ended.
  expect(log).toEqual(["ann 400", "bob 500"]);
  expect(share.waiting).toBe(4);
  first.release();
  first.release();
  await Promise.all([rest[0], rest[3]]);
  expect(log.slice(2)).toEqual(["ann 300", "cat 200"]);
  expect([share.waiting, share.used]).toEqual([2, 1_000]);
  (await rest[0])?.release();
  (await rest[2])?.release();
  for (const one of await Promise.all(rest)) one.release();
  expect(share.used).toBe(0);
});

test("[CH-54] no large piece overtakes another that waits, and small ones don't wait for them", async () => {
  const share = new MemoryShare(LIMITS);
  const { log, take } = makeTakes(share);
  const ann = await take("ann", 500);
  const bob = take("bob", 510);
  await bob;
  const cat = take("cat", 400);
  const dan = take("dan", 9);
  expect((await Promise.all(Array.from({ length: 8 }, () => take("ann", 8)))).length).toBe(8);
  expect(log).not.toContain("dan 9");
  ann.release();
  await Promise.all([cat, dan]);
  expect(share.waiting).toBe(0);
});

test("[CH-54] small pieces give way to a large one that waits", async () => {
  const share = new MemoryShare({ total: 1_024, each: 1_024 });
  const { take } = makeTakes(share);
  const small = await Promise.all(Array.from({ length: 128 }, () => take("ann", 8)));
  const large = take("bob", 1_000);
  const later = take("cat", 8);
  expect(share.waiting).toBe(2);
  for (const one of small.slice(0, 113)) one.release();
  await Promise.all([large, later]);
  expect(share.used).toBe(15 * 8 + 8 + 1_000);
});

test("[CH-54] a piece that is larger than the share runs without other large ones", async () => {
  const share = new MemoryShare(LIMITS);
  const { log, take } = makeTakes(share);
  const ann = await take("ann", 100);
  const bob = take("bob", 5_000);
  const cat = take("cat", 100);
  ann.release();
  const alone = await bob;
  expect([log, share.waiting]).toEqual([["ann 100", "bob 5000"], 1]);
  alone.resize(300);
  await cat;
  expect(share.used).toBe(400);
});

test("[CH-54] who stops waiting leaves the line, and what two keep is free when both have released it", async () => {
  const share = new MemoryShare(LIMITS);
  const stop = new AbortController();
  const ann = await share.take("ann", 512, never);
  const waiting = share.take("ann", 100, stop.signal);
  const next = share.take("ann", 50, never);
  stop.abort(new Error("stopped"));
  expect(await waiting.catch((error: Error) => error.message)).toBe("stopped");
  const kept = ann.keep();
  ann.release();
  expect([share.waiting, share.used]).toEqual([1, 512]);
  kept.release();
  (await next).release();
  kept.resize(100);
  expect([share.waiting, share.used]).toEqual([0, 0]);
  await expect(share.take("ann", 1, stop.signal)).rejects.toThrow("stopped");
});
