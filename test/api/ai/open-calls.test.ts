import { expect, test } from "bun:test";
import { OpenCalls } from "#src/api/ai/open-calls.ts";

const MIB = 1024 * 1024;
const requireSlot = (place: ReturnType<OpenCalls["open"]>) => {
  if ("status" in place) throw new Error(place.message);
  return place;
};

test("[GW-9] refuses a user's fifth request of 64 MiB, and accepts those of others", () => {
  const calls = new OpenCalls();
  const places = Array.from({ length: 4 }, () => requireSlot(calls.open("ann", 64 * MIB)));
  expect(calls.open("ann", 1)).toMatchObject({ status: 429, code: "too_many_calls" });
  requireSlot(calls.open("bob", 64 * MIB)).release();
  places[0]?.release();
  places[0]?.release();
  requireSlot(calls.open("ann", 64 * MIB));
  expect(calls.open("ann", 1)).toHaveProperty("status", 429);
});

test("[GW-9] counts a request without a declared length by its size once it is read", () => {
  const calls = new OpenCalls();
  for (let i = 0; i < 100; i++) requireSlot(calls.open("ann", 64 * MIB)).setBodySize(1_000);
  expect(calls.open("ann", 1)).toHaveProperty("status", 429);
});
