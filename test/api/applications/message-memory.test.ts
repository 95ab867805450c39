// The memory of messages that apps send to their users. Needs no server.
import { expect, test } from "bun:test";
import { shareOfMemory } from "#base/system/memory.ts";
import { AppMessageMemory } from "#src/api/applications/message-memory.ts";
import { ManualClock } from "#test/support/manual-clock.ts";

/** The long messages of one owner. */
const OWNER_BYTES = Math.floor(shareOfMemory(1 / 4) / 4);

const openMemory = (owner_id: string, clock = new ManualClock(), onTimeout = () => {}) =>
  new AppMessageMemory({ clock, owner_id, onTimeout });

test("[AX-29] long messages of all workspaces of one owner share a quarter, and others' messages pass", () => {
  const first = openMemory("mallory");
  const second = openMemory("mallory");
  first.add(OWNER_BYTES);
  expect(() => second.add(100_000)).toThrow("Too many app messages are waiting");
  const others = ["bob", "carl", "dave"].map((owner) => openMemory(owner));
  for (const memory of others) memory.add(OWNER_BYTES);
  // The whole budget of long messages is in use.
  const late = openMemory("erin");
  late.add(20_000);
  expect(() => late.add(100_000)).toThrow("Too many app messages are waiting");
  for (const memory of [first, second, late, ...others]) memory.release();
  second.add(OWNER_BYTES);
  second.release();
});

test("[AX-29] while half of the budget is in use, a message has a minute, also if its user does not take it", () => {
  const clock = new ManualClock();
  let timeouts = 0;
  const memory = openMemory("mallory", clock, () => {
    timeouts += 1;
  });
  for (let i = 0; i < 3; i++) {
    memory.add(OWNER_BYTES);
    clock.advance(59_000);
    memory.release();
  }
  expect(timeouts).toBe(0);
  memory.add(OWNER_BYTES);
  clock.advance(60_000);
  expect(timeouts).toBe(1);
  memory.release();
});

test("[AX-29] while there is room, a slow app has the time that it needs", () => {
  const clock = new ManualClock();
  let timeouts = 0;
  const memory = openMemory("bob", clock, () => {
    timeouts += 1;
  });
  memory.add(100_000);
  clock.advance(600_000);
  expect(timeouts).toBe(0);
  // Others fill the budget.
  const crowd = ["carl", "dave", "erin"].map((owner) => openMemory(owner));
  for (const one of crowd) one.add(OWNER_BYTES);
  clock.advance(60_000);
  expect(timeouts).toBe(1);
  for (const one of [memory, ...crowd]) one.release();
});
