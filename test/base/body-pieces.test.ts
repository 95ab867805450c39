// Bodies that come in small pieces.
import { expect, test } from "bun:test";
import { paceBody } from "#base/network/body-pieces.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { until } from "#test/support/until.ts";

async function* makePieces(count: number, size: number): AsyncGenerator<Uint8Array> {
  for (let i = 0; i < count; i += 1) yield new Uint8Array(size);
}

test("[AX-6] small chunks are handled 64 at a time, larger ones as they arrive", async () => {
  const clock = new ManualClock();
  let taken = 0;
  const countPieces = async (size: number): Promise<void> => {
    for await (const _ of paceBody(clock, makePieces(130, size))) taken += 1;
  };
  await countPieces(1_024);
  expect(taken).toBe(130);
  taken = 0;
  const slow = countPieces(1);
  for (const count of [64, 128]) {
    await until(() => taken === count);
    clock.advance(20);
  }
  await slow;
  expect(taken).toBe(130);
});
