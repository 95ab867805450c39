// The share of the memory for large pieces of work: the order in which waiting pieces start.
import { expect, test } from "bun:test";
import { MemoryShare } from "#base/system/memory-share.ts";

const LIMITS = { total: 1_024, each: 512 };
const neverAborted = new AbortController().signal;

/** Returns a function that takes memory from the share, and the log of the taken memory. */
const makeTake = (share: MemoryShare) => {
  const log: string[] = [];
  const take = async (holder: string, bytes: number, signal = neverAborted) => {
    const hold = await share.take(holder, bytes, signal);
    log.push(`${holder} ${bytes}`);
    return hold;
  };
  return { log, take };
};

test("[CH-54] waiting large pieces of people with less memory start first, and a person gets at most half of the share", async () => {
  const share = new MemoryShare(LIMITS);
  const { log, take } = makeTake(share);
  const firstHold = await take("ann", 400);
  const pieces = [take("ann", 300), take("ann", 301), take("bob", 500), take("cat", 200), take("bob", 100)];
  await pieces[2];
  // Ann's second piece exceeds her half. Cat's piece is next, and fits only after Ann's first piece has ended.
  expect(log).toEqual(["ann 400", "bob 500"]);
  expect(share.waiting).toBe(4);
  firstHold.release();
  firstHold.release();
  await Promise.all([pieces[0], pieces[3]]);
  expect(log.slice(2)).toEqual(["ann 300", "cat 200"]);
  expect([share.waiting, share.used]).toEqual([2, 1_000]);
  (await pieces[0])?.release();
  (await pieces[2])?.release();
  for (const hold of await Promise.all(pieces)) hold.release();
  expect(share.used).toBe(0);
});

test("[CH-54] no large piece overtakes a large piece that waits, and small pieces don't wait for large ones", async () => {
  const share = new MemoryShare(LIMITS);
  const { log, take } = makeTake(share);
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

test("[CH-54] small pieces do not use the memory that a waiting large piece needs", async () => {
  const share = new MemoryShare({ total: 1_024, each: 1_024 });
  const { take } = makeTake(share);
  const small = await Promise.all(Array.from({ length: 128 }, () => take("ann", 8)));
  const large = take("bob", 1_000);
  const later = take("cat", 8);
  expect(share.waiting).toBe(2);
  for (const hold of small.slice(0, 113)) hold.release();
  await Promise.all([large, later]);
  expect(share.used).toBe(15 * 8 + 8 + 1_000);
});

test("[CH-54] a piece that is larger than the share runs without other large pieces", async () => {
  const share = new MemoryShare(LIMITS);
  const { log, take } = makeTake(share);
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

test("[CH-54] an aborted wait does not block others, and memory with two holds is free when both are released", async () => {
  const share = new MemoryShare(LIMITS);
  const stop = new AbortController();
  const ann = await share.take("ann", 512, neverAborted);
  const waiting = share.take("ann", 100, stop.signal);
  const next = share.take("ann", 50, neverAborted);
  stop.abort(new Error("stopped"));
  expect(await waiting.catch((error: Error) => error.message)).toBe("stopped");
  const secondHold = ann.keep();
  ann.release();
  expect([share.waiting, share.used]).toEqual([1, 512]);
  secondHold.release();
  (await next).release();
  secondHold.resize(100);
  expect([share.waiting, share.used]).toEqual([0, 0]);
  await expect(share.take("ann", 1, stop.signal)).rejects.toThrow("stopped");
});
