// Connections to forwarded ports while the workspace is stopped or starting.
import { expect, test } from "bun:test";
import { HeldConnections, MAX_HELD, MAX_HELD_MS, RETRY_WINDOW_MS } from "#src/cli/client/network/held-connections.ts";
import type { Duplex } from "#src/wire/duplex.ts";
import { WireError } from "#src/wire/wire-error.ts";
import { ManualClock } from "#test/support/manual-clock.ts";

const createStream = (port: number): Duplex => ({ port }) as never;
const dialPort = async (port: number): Promise<Duplex> => createStream(port);

test("[WO-8] connections wait while the workspace starts, bounded in number and time", async () => {
  const clock = new ManualClock();
  const held = new HeldConnections(clock);
  const first = Array.from({ length: MAX_HELD }, (_, i) => held.dial(i));
  expect(held.dial(1)).rejects.toThrow("Too many");
  held.open(dialPort, true);
  expect((await Promise.all(first)).map((one) => (one as never as { port: number }).port)).toEqual(
    Array.from({ length: MAX_HELD }, (_, i) => i),
  );
  const late = new HeldConnections(clock);
  const waiting = late.dial(80);
  clock.advance(MAX_HELD_MS);
  expect(waiting).rejects.toThrow("too long");
});

test("[WO-8] after a stop a client that keeps retrying is refused; a connection after a quiet minute starts the workspace", async () => {
  const clock = new ManualClock();
  const held = new HeldConnections(clock);
  held.open(dialPort, false);
  held.close();
  let isRequested = false;
  const request = held.waitForStartRequest().then(() => {
    isRequested = true;
  });
  for (let second = 0; second < 600; second += 5) {
    expect(held.dial(80)).rejects.toThrow("stopped");
    clock.advance(5_000);
  }
  expect(isRequested).toBe(false);
  clock.advance(RETRY_WINDOW_MS);
  const waiting = held.dial(80);
  // Further connections during the start are also held.
  const another = held.dial(81);
  await request;
  held.open(dialPort, true);
  await Promise.all([waiting, another]);
  held.close();
  clock.advance(RETRY_WINDOW_MS);
  const failing = held.dial(80);
  held.close();
  expect(failing).rejects.toThrow("cannot be reached");
});

test("[WO-8] a port without a listener is retried for a minute after a start, and refused immediately otherwise", async () => {
  const clock = new ManualClock();
  let attemptCount = 0;
  const refuseFirst = async (): Promise<Duplex> => {
    attemptCount += 1;
    if (attemptCount < 4) throw new WireError("refused", "Nothing listens.");
    return createStream(80);
  };
  const held = new HeldConnections(clock);
  held.open(refuseFirst, false);
  expect(held.dial(80)).rejects.toThrow("Nothing listens");
  await Promise.resolve();
  held.close();
  attemptCount = 0;
  held.open(refuseFirst, true);
  const opened = held.dial(80);
  while (attemptCount < 4) {
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(500);
  }
  await opened;
});
