// Hashing under a flood, and where a caller comes from.
import { describe, expect, test } from "bun:test";
import type { AppError } from "#base/errors.ts";
import { Addresses } from "#src/api/address.ts";
import { Passwords } from "#src/api/users/passwords.ts";
import { Throttle } from "#src/api/users/throttle.ts";
import { ManualClock } from "#test/support/manual-clock.ts";

describe("passwords", () => {
  test("[ID-6] are argon2id; a flood waits in a bounded queue and the rest is refused, then all goes on", async () => {
    const passwords = new Passwords();
    const hash = await passwords.hash("correct-horse-battery");
    expect(hash).toStartWith("$argon2id$v=19$m=19456,t=2,p=1$");
    const flood = await Promise.allSettled(Array.from({ length: 80 }, () => passwords.verify("wrong", hash)));
    const refused = flood.filter((one) => one.status === "rejected");
    expect(refused).toHaveLength(80 - 2 - 64);
    for (const one of refused) expect((one.reason as AppError).kind).toBe("overloaded");
    expect(await passwords.verify("correct-horse-battery", hash)).toBe(true);
  });

  test("[ID-4] an unknown account costs a whole verification with the same parameters", async () => {
    const passwords = new Passwords();
    const hash = await passwords.hash("x");
    const elapsed = async (against: string | undefined) => {
      const times: number[] = [];
      for (let i = 0; i < 9; i++) {
        const start = Bun.nanoseconds();
        expect(await passwords.verify("guess", against)).toBe(false);
        times.push(Bun.nanoseconds() - start);
      }
      return times.sort((a, b) => a - b)[4] as number;
    };
    const [known, unknown, empty] = [await elapsed(hash), await elapsed(undefined), await elapsed("")];
    // Hashing takes milliseconds; not doing it takes microseconds.
    expect(unknown).toBeGreaterThan(known / 5);
    expect(empty).toBeGreaterThan(known / 5);
  });
});

test("[ID-5] a minute later the count begins anew, and each key has its own", () => {
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

describe("the address of a caller", () => {
  const from = (peer: string, forwarded?: string): Request & { peer: string } =>
    Object.assign(new Request("http://x/", { headers: forwarded ? { "x-forwarded-for": forwarded } : {} }), { peer });
  const addresses = new Addresses(["10.0.0.0/8", "::1"], (request) => (request as Request & { peer: string }).peer);

  test.each<[string, string | undefined, string]>([
    ["192.0.2.1", undefined, "192.0.2.1"],
    ["192.0.2.1", "203.0.113.9", "192.0.2.1"],
    ["10.1.2.3", "203.0.113.9", "203.0.113.9"],
    ["::ffff:10.1.2.3", "203.0.113.9", "203.0.113.9"],
    ["10.1.2.3", "1.1.1.1, 203.0.113.9, 10.9.9.9", "203.0.113.9"],
    ["::1", "2001:db8::7", "2001:db8::7"],
    ["10.1.2.3", "evil", "10.1.2.3"],
    ["10.1.2.3", undefined, "10.1.2.3"],
  ])("[ID-17] from %s with X-Forwarded-For %p is %s", (peer, forwarded, expected) => {
    expect(addresses.of(from(peer, forwarded))).toBe(expected);
  });
});
