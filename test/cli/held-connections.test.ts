// Connections to forwarded ports while the workspace is stopped or starting.
import { expect, test } from "bun:test";
import { HeldConnections, MAX_HELD, MAX_HELD_MS, RETRY_WINDOW_MS } from "#src/cli/client/network/held-connections.ts";
import type { Duplex } from "#src/wire/duplex.ts";
import { WireError } from "#src/wire/wire-error.ts";
import { ManualClock } from "#test/support/manual-clock.ts";

const stream = (port: number): Duplex => ({ port }) as never;
const reach = async (port: number): Promise<Duplex> => stream(port);

test("[WO-8] connections wait while the workspace starts, bounded in number and time", async () => {
  const clock = new ManualClock();
  const held = new HeldConnections(clock);
  const first = Array.from({ length: MAX_HELD }, (_, i) => held.dial(i));
  expect(held.dial(1)).rejects.toThrow("Too many");
  held.open(reach, true);
  expect((await Promise.all(first)).map((one) => (one as never as { port: number }).port)).toEqual(
    Array.from({ length: MAX_HELD }, (_, i) => i),
  );
  const late = new HeldConnections(clock);
  const waiting = late.dial(80);
  clock.advance(MAX_HELD_MS);
  expect(waiting).rejects.toThrow("too long");
});

test("[WO-8] after a stop a client that keeps retrying is refused; one after a quiet minute starts the workspace", async () => {
  const clock = new ManualClock();
  const held = new HeldConnections(clock);
  held.open(reach, false);
  held.close();
  let isWanted = false;
  const wanted = held.waitForStartRequest().then(() => {
    isWanted = true;
  });
  for (let second = 0; second < 600; second += 5) {
    expect(held.dial(80)).rejects.toThrow("stopped");
    clock.advance(5_000);
  }
  expect(isWanted).toBe(false);
  clock.advance(RETRY_WINDOW_MS);
  const waiting = held.dial(80);
  // Further connections during the start are also held.
  const another = held.dial(81);
  await wanted;
  held.open(reach, true);
  await Promise.all([waiting, another]);
  held.close();
  clock.advance(RETRY_WINDOW_MS);
  const failing = held.dial(80);
  held.close();
  expect(failing).rejects.toThrow("cannot be reached");
});

test("[WO-8] a port without a listener is retried for a minute after a start, and refused immediately otherwise", async () => {
  const clock = new ManualClock();
  let tries = 0;
  const refuseFirst = async (): Promise<Duplex> => {
    tries += 1;
    if (tries < 4) throw new WireError("refused", "Nothing listens.");
    return stream(80);
  };
  const held = new HeldConnections(clock);
  held.open(refuseFirst, false);
  expect(held.dial(80)).rejects.toThrow("Nothing listens");
  await Promise.resolve();
  held.close();
  tries = 0;
  held.open(refuseFirst, true);
  const opened = held.dial(80);
  while (tries < 4) {
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(500);
  }
  await opened;
});
