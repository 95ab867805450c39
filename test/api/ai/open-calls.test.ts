// The limits on open gateway calls and on the memory for their bodies.
import { expect, test } from "bun:test";
import { MemoryShare } from "#base/system/memory-share.ts";
import { OpenCalls } from "#src/api/ai/open-calls.ts";
import { ManualClock } from "#test/support/manual-clock.ts";

const MIB = 1024 * 1024;
const neverAborted = new AbortController().signal;

const setUp = () => {
  const clock = new ManualClock();
  const memory = new MemoryShare({ total: 512 * MIB, each: 256 * MIB });
  return { clock, memory, calls: new OpenCalls(clock, memory) };
};
const requireSlot = (slot: Awaited<ReturnType<OpenCalls["open"]>>) => {
  if ("status" in slot) throw new Error(slot.message);
  return slot;
};

test("[GW-9] a user's fifth request of 8 MiB waits and is then refused, while other users' requests are accepted", async () => {
  const { clock, memory, calls } = setUp();
  const open = async (user: string) => requireSlot(await calls.open(user, 8 * MIB, neverAborted));
  const slots = [await open("ann"), await open("ann"), await open("ann"), await open("ann")];
  const fifth = calls.open("ann", 8 * MIB, neverAborted);
  expect(memory.waiting).toBe(1);
  (await open("bob")).release();
  clock.advance(10_000);
  expect(await fifth).toMatchObject({ status: 429, code: "too_many_calls" });
  const sixth = open("ann");
  slots[0]?.release();
  slots[0]?.release();
  await sixth;
  expect([calls.count, memory.waiting]).toEqual([4, 0]);
  const controller = new AbortController();
  const abandonedCall = calls.open("ann", 8 * MIB, controller.signal);
  controller.abort();
  expect(await abandonedCall).toHaveProperty("status", 429);
});

test("[GW-9] counts a request without a declared length by its size once it is read", async () => {
  const { calls } = setUp();
  for (let i = 0; i < 100; i++) requireSlot(await calls.open("ann", 8 * MIB, neverAborted)).setBodySize(1_000);
  expect(await calls.open("ann", 1, neverAborted)).toHaveProperty("status", 429);
});
