// Hashing during a flood, limits on guesses, and the address of a caller.
import { describe, expect, spyOn, test } from "bun:test";
import type { AppError } from "#base/errors.ts";
import { Passwords } from "#domain/users/passwords.ts";
import { Throttle, toNetwork } from "#domain/users/throttle.ts";
import { Addresses } from "#src/api/http/address.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { accountsWith } from "./people.ts";

describe("passwords", () => {
  test("[ID-6] are hashed with argon2id; a flood waits in a bounded queue, and the rest is rejected", async () => {
    const passwords = new Passwords(new ManualClock());
    const hash = await passwords.hash("correct-horse-battery");
    expect(hash).toStartWith("$argon2id$v=19$m=19456,t=2,p=1$");
    // The mock replaces the work of Bun, which would take a minute.
    const gate = Promise.withResolvers<boolean>();
    using verifySpy = spyOn(Bun.password, "verify").mockImplementation(() => gate.promise);
    const requester = { keys: ["address 192.0.2.1"], isKnown: false };
    const flood = Array.from({ length: 600 }, () => passwords.verify("wrong", hash, requester));
    const lateVerification = passwords.verify("correct-horse-battery", hash, {
      keys: ["address 192.0.2.2"],
      isKnown: false,
    });
    expect(verifySpy).toHaveBeenCalledTimes(2);
    gate.resolve(true);
    const results = await Promise.allSettled(flood);
    const rejected = results.filter(({ status }) => status === "rejected") as PromiseRejectedResult[];
    // One more than the queue rejects: the caller from another address replaced one of the flood.
    expect(rejected).toHaveLength(600 - 2 - 512 + 1);
    for (const { reason } of rejected) expect((reason as AppError).kind).toBe("overloaded");
    expect(await lateVerification).toBe(true);
  });

  test("[ID-4] an unknown account costs a full verification with the same parameters", async () => {
    // Checks the number of calls and the cost of the hash, because a measured time would depend on the machine.
    const passwords = new Passwords(new ManualClock());
    const hash = await passwords.hash("x");
    const getCost = (text: string): string => text.split("$").slice(0, 4).join("$");
    using verifySpy = spyOn(Bun.password, "verify");
    for (const storedHash of [hash, undefined, ""]) expect(await passwords.verify("guess", storedHash)).toBe(false);
    const costs = verifySpy.mock.calls.map(([, comparedHash]) => getCost(String(comparedHash)));
    expect(costs).toEqual([getCost(hash), getCost(hash), getCost(hash)]);
  });
});

test("[ID-5] each key has its own count, which starts over after a minute", () => {
  const clock = new ManualClock();
  const throttle = new Throttle(clock, 2);
  const isRefused = (key: string): boolean => {
    try {
      throttle.count(key);
      return false;
    } catch (error) {
      return (error as AppError).kind === "too_many_requests";
    }
  };
  expect(["a", "a", "a", "b"].map(isRefused)).toEqual([false, false, true, false]);
  clock.advance(60_000);
  expect(isRefused("a")).toBe(false);
});

test("[ID-5] limits wrong passwords from one address for all accounts together, and does not count correct ones", () => {
  const clock = new ManualClock();
  const accounts = accountsWith(clock);
  const tryPassword = (address: string, account: string, isRight = false): boolean => {
    try {
      const guess = accounts.countGuess({ address, account: `${account}@example.com`, isKnown: false });
      if (isRight) guess.markCorrect();
      return true;
    } catch (error) {
      expect((error as AppError).kind).toBe("too_many_requests");
      return false;
    }
  };
  const countAccepted = (address: string, isRight: boolean): number =>
    Array.from({ length: 200 }, (_, i) => tryPassword(address, `user${i}`, isRight)).filter(Boolean).length;
  expect(countAccepted("192.0.2.1", true)).toBe(200);
  expect(countAccepted("192.0.2.1", false)).toBe(120);
  // Now even the right password is rejected. Otherwise, guessing could continue.
  expect(tryPassword("192.0.2.1", "ada", true)).toBe(false);
  expect(tryPassword("192.0.2.2", "ada", true)).toBe(true);
  expect(countAccepted("2001:db8::1", false)).toBe(120);
  expect(tryPassword("2001:db8::2:3", "ada")).toBe(false);
  expect(tryPassword("2001:db8:0:1::1", "ada")).toBe(true);
  clock.advance(60_000);
  expect(tryPassword("192.0.2.1", "ada")).toBe(true);
  // Guesses beyond an account's limit do not count for the address, so that they do not lock out others there.
  for (let i = 0; i < 300; i++) tryPassword("192.0.2.9", "eve");
  expect(tryPassword("192.0.2.9", "ada", true)).toBe(true);
});

test.each([
  ["192.0.2.1", "192.0.2.1"],
  ["", ""],
  ["::1", "0:0:0:0::/64"],
  ["2001:db8::", "2001:db8:0:0::/64"],
  ["2001:0DB8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["fe80::1:2%eth0", "fe80:0:0:0::/64"],
])("[ID-5] guesses from %p count for %p", (address, network) => {
  expect(toNetwork(address)).toBe(network);
});

describe("the address of a caller", () => {
  const createRequest = (peer: string, forwarded?: string): Request & { peer: string } =>
    Object.assign(new Request("http://x/", { headers: forwarded ? { "x-forwarded-for": forwarded } : {} }), { peer });
  const addresses = new Addresses(["10.0.0.0/8", "::1"], (request) => (request as Request & { peer: string }).peer);

  test.each<[string, string | undefined, string]>([
    ["192.0.2.1", undefined, "192.0.2.1"],
    ["192.0.2.1", "203.0.113.9", "192.0.2.1"],
    ["10.1.2.3", "203.0.113.9", "203.0.113.9"],
    ["::ffff:10.1.2.3", "203.0.113.9", "203.0.113.9"],
    ["10.1.2.3", "1.1.1.1, 203.0.113.9, 10.9.9.9", "203.0.113.9"],
    ["::1", "2001:db8::7", "2001:db8::7"],
    ["10.1.2.3", "203.0.113.9:50123", "203.0.113.9"],
    ["10.1.2.3", "[2001:db8::7]:50123", "2001:db8::7"],
    ["10.1.2.3", "evil", "10.1.2.3"],
    ["10.1.2.3", undefined, "10.1.2.3"],
  ])("[ID-17] from %s with X-Forwarded-For %p is %s", (peer, forwarded, expected) => {
    expect(addresses.of(createRequest(peer, forwarded))).toBe(expected);
  });
});
