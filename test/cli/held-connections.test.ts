// Connections to forwarded ports while the workspace is stopped or starting.
import { expect, test } from "bun:test";
import { HeldConnections, MAX_HELD, MAX_HELD_MS, RETRY_WINDOW_MS } from "#src/cli/client/network/held-connections.ts";
import type { Duplex } from "#src/wire/duplex.ts";
import { WireError } from "#src/wire/wire-error.ts";
import { ManualClock } from "#test/support/manual-clock.ts";

const createStream = (port: number): Duplex => ({ port }) as never;
const dialPort = async (port: number): Promise<Duplex> => createStream(port);

test("[WO-8] a limited number of connections waits for a limited time while the workspace starts", async () => {
  const clock = new ManualClock();
  const heldConnections = new HeldConnections(clock);
  const first = Array.from({ length: MAX_HELD }, (_, i) => heldConnections.dial(i));
  expect(heldConnections.dial(1)).rejects.toThrow("Too many");
  heldConnections.open(dialPort, true);
  expect((await Promise.all(first)).map((stream) => (stream as never as { port: number }).port)).toEqual(
    Array.from({ length: MAX_HELD }, (_, i) => i),
  );
  const timedOut = new HeldConnections(clock);
  const pending = timedOut.dial(80);
  clock.advance(MAX_HELD_MS);
  expect(pending).rejects.toThrow("too long");
});

test("[WO-8] after a stop, a retrying client is refused; a connection after a quiet minute starts the workspace", async () => {
  const clock = new ManualClock();
  const heldConnections = new HeldConnections(clock);
  heldConnections.open(dialPort, false);
  heldConnections.close();
  let isRequested = false;
  const request = heldConnections.waitForStartRequest().then(() => {
    isRequested = true;
  });
  for (let second = 0; second < 600; second += 5) {
    expect(heldConnections.dial(80)).rejects.toThrow("stopped");
    clock.advance(5_000);
  }
  expect(isRequested).toBe(false);
  clock.advance(RETRY_WINDOW_MS);
  const pending = heldConnections.dial(80);
  // Other connections during the start also wait.
  const secondPending = heldConnections.dial(81);
  await request;
  heldConnections.open(dialPort, true);
  await Promise.all([pending, secondPending]);
  heldConnections.close();
  clock.advance(RETRY_WINDOW_MS);
  const failing = heldConnections.dial(80);
  heldConnections.close();
  expect(failing).rejects.toThrow("cannot be reached");
});

test("[WO-8] a port without a listener is retried for a minute after a start, otherwise refused immediately", async () => {
  const clock = new ManualClock();
  let attemptCount = 0;
  const refuseFirst = async (): Promise<Duplex> => {
    attemptCount += 1;
    if (attemptCount < 4) throw new WireError("refused", "Nothing listens.");
    return createStream(80);
  };
  const heldConnections = new HeldConnections(clock);
  heldConnections.open(refuseFirst, false);
  expect(heldConnections.dial(80)).rejects.toThrow("Nothing listens");
  await Promise.resolve();
  heldConnections.close();
  attemptCount = 0;
  heldConnections.open(refuseFirst, true);
  const opened = heldConnections.dial(80);
  while (attemptCount < 4) {
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(500);
  }
  await opened;
});
