// Bodies that arrive in small pieces, or slowly.
import { expect, test } from "bun:test";
import { ProgressWatch, paceBody } from "#base/network/body-pieces.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { until } from "#test/support/until.ts";

async function* makePieces(count: number, size: number): AsyncGenerator<Uint8Array> {
  for (let i = 0; i < count; i += 1) yield new Uint8Array(size);
}

test("[AX-6] small chunks are handled 64 at a time, larger ones as they arrive", async () => {
  const clock = new ManualClock();
  let pieceCount = 0;
  const countPieces = async (size: number): Promise<void> => {
    for await (const _ of paceBody(clock, makePieces(130, size))) pieceCount += 1;
  };
  await countPieces(1_024);
  expect(pieceCount).toBe(130);
  pieceCount = 0;
  const slow = countPieces(1);
  for (const count of [64, 128]) {
    await until(() => pieceCount === count);
    clock.advance(20);
  }
  await slow;
  expect(pieceCount).toBe(130);
});

test("[AX-27] a body is slow if its sender sends less than a kilobyte per second, but not if its reader is busy", async () => {
  const clock = new ManualClock();
  let slowCount = 0;
  const progress = new ProgressWatch(clock, () => {
    slowCount += 1;
  });
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const reader = progress.watch(readable);
  const send = async (bytes: number): Promise<void> => {
    const [{ value }] = await Promise.all([reader.next(), writer.write(new Uint8Array(bytes))]);
    expect(value?.byteLength).toBe(bytes);
  };
  await send(40_000);
  let pendingRead = reader.next();
  clock.advance(30_000);
  expect(slowCount).toBe(0);
  clock.advance(30_000);
  expect(slowCount).toBe(1);
  await writer.write(new Uint8Array(1));
  await pendingRead;
  // The reader has a piece and does not read the next one.
  clock.advance(30_000);
  clock.advance(30_000);
  expect(slowCount).toBe(1);
  for (const [bytes, expected] of [
    [1, 2],
    [31_000, 2],
  ] as const) {
    pendingRead = reader.next();
    clock.advance(29_000);
    await writer.write(new Uint8Array(bytes));
    await pendingRead;
    clock.advance(1_000);
    expect(slowCount).toBe(expected);
  }
  progress.stop();
  pendingRead = reader.next();
  clock.advance(60_000);
  expect(slowCount).toBe(2);
  await writer.close();
  expect((await pendingRead).done).toBe(true);
});
