// Limits on wrong passwords for an account from many addresses, and the order in which the server hashes waiting passwords.
import { describe, expect, test } from "bun:test";
import type { AppError } from "#base/errors.ts";
import type { Guesser } from "#domain/users/accounts.ts";
import { HashQueue } from "#domain/users/hash-queue.ts";
import { Guesses } from "#domain/users/password-attempts.ts";
import { Client } from "#src/client.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { accountsWith, newPerson, PASSWORD } from "./people.ts";

const MINUTE = 60_000;

/** Returns undefined if the guess was counted, else the seconds to wait. */
const getRefusal = (work: () => unknown): number | undefined => {
  try {
    work();
    return undefined;
  } catch (error) {
    expect((error as AppError).kind).toBe("too_many_requests");
    return (error as AppError).retry_after;
  }
};

describe("guesses at an account", () => {
  test("[ID-19] are limited to a hundred wrong ones in any hour, and the response says when to try again", () => {
    const clock = new ManualClock();
    const guesses = new Guesses(clock);
    const times: number[] = [];
    for (let minute = 0; minute < 600; minute++) {
      for (let i = 0; i < 3; i++) if (getRefusal(() => guesses.count("ada")) === undefined) times.push(minute);
      clock.advance(MINUTE);
    }
    const mostInAnHour = Math.max(
      ...times.map((start) => times.filter((time) => time >= start && time < start + 60).length),
    );
    expect(mostInAnHour).toBe(100);
    expect(times.length).toBeGreaterThan(800);
    while (getRefusal(() => guesses.count("ada")) === undefined);
    const waitSeconds = getRefusal(() => guesses.count("ada")) as number;
    clock.advance(waitSeconds * 1000);
    expect(getRefusal(() => guesses.count("ada"))).toBeUndefined();
  });

  test("[ID-19] delay each further attempt more, up to two seconds; a correct password is not counted", () => {
    const guesses = new Guesses(new ManualClock());
    const delays = Array.from({ length: 100 }, () => {
      guesses.count("ada");
      return guesses.getDelay("ada");
    });
    expect(delays.slice(0, 20)).toEqual(Array(20).fill(0));
    expect(delays[20]).toBe(25);
    expect(delays.at(-1)).toBe(2000);
    expect([...delays].sort((a, b) => a - b)).toEqual(delays);
    guesses.forgive("ada");
    expect(getRefusal(() => guesses.count("ada"))).toBeUndefined();
    expect(getRefusal(() => guesses.count("ada"))).toBeGreaterThan(3000);
    expect(guesses.getDelay("ben")).toBe(0);
  });

  test("[ID-19] at many accounts do not evict the most attacked one", () => {
    const guesses = new Guesses(new ManualClock());
    for (let i = 0; i < 100; i++) guesses.count("ada");
    for (let i = 0; i < 120_000; i++) guesses.count(`unknown${i}`);
    expect(getRefusal(() => guesses.count("ada"))).toBeDefined();
  });

  test("[ID-19] of others lock out neither a known address nor an open session; unknown names are treated alike", () => {
    const accounts = accountsWith(new ManualClock());
    const recordGuess = (guesser: Partial<Guesser>) =>
      getRefusal(() =>
        accounts.countGuess({ address: "192.0.2.1", account: "ada@example.com", isKnown: false, ...guesser }),
      );
    for (const account of ["ada@example.com", "unknown@example.com"]) {
      for (let i = 0; i < 100; i++) expect(recordGuess({ address: `198.51.100.${i}`, account })).toBeUndefined();
      expect(recordGuess({ address: "198.51.100.200", account: account.toUpperCase() })).toBeGreaterThan(0);
    }
    expect(recordGuess({ isKnown: true })).toBeUndefined();
    expect(recordGuess({ isSignedIn: true })).toBeUndefined();
    expect(recordGuess({ account: "ben@example.com" })).toBeUndefined();
  });

  test("[ID-19] with a stolen token are limited across addresses; the owner can still confirm from a known address", async () => {
    await using server = await startTestServer({ env: { SLIPWAY_TRUSTED_PROXIES: "127.0.0.1" } });
    const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
    const { client } = await newPerson(admin, "ada");
    const { key } = await client.post<{ key: string }>("/api/v2/users/me/keys/tokens", {});
    const send = async (address: string, method: string, path: string, body: object): Promise<number> => {
      const headers = { "service-session-token": key, "x-forwarded-for": address, "content-type": "application/json" };
      const response = await fetch(new URL(`/api/v2/users/me/${path}`, server.url), {
        method,
        headers,
        body: JSON.stringify(body),
      });
      await response.body?.cancel();
      return response.status;
    };
    const guess = (i: number): Promise<number> =>
      i % 2 === 0
        ? send(`198.51.100.${i}`, "PUT", "password", { password: "brand-new-horse-77", old_password: `wrong ${i}` })
        : send(`198.51.100.${i}`, "POST", "confirm", { password: `wrong ${i}` });
    const statuses = await Promise.all(Array.from({ length: 130 }, (_, i) => guess(i)));
    expect(statuses.filter((status) => status === 400)).toHaveLength(100);
    expect(statuses.filter((status) => status === 429)).toHaveLength(30);
    expect(
      await send("203.0.113.1", "PUT", "password", { password: "brand-new-horse-77", old_password: PASSWORD }),
    ).toBe(429);
    const signIn = await fetch(new URL("/api/v2/users/login", server.url), {
      method: "POST",
      headers: { "x-forwarded-for": "192.0.2.1", "content-type": "application/json" },
      body: JSON.stringify({ email: "ada@example.com", password: PASSWORD }),
    });
    expect(signIn.status).toBe(201);
    expect(await send("192.0.2.1", "POST", "confirm", { password: PASSWORD })).toBeLessThan(300);
  });
});

describe("the hash queue", () => {
  const toRequester = (address: string, account: string, isKnown = false) => ({
    keys: [`address ${address}`, `account ${account}`],
    isKnown,
  });

  /** Serves all waiting requests in queue order. */
  const serveAll = (queue: HashQueue<string>, requesters: Map<string, ReturnType<typeof toRequester>>): string[] => {
    const served: string[] = [];
    for (let { next } = queue.next(); next !== undefined; { next } = queue.next()) {
      served.push(next);
      queue.recordUse(requesters.get(next) as ReturnType<typeof toRequester>);
    }
    return served;
  };

  test("[ID-18] is divided by address and by account, each in order of arrival", () => {
    const queue = new HashQueue<string>(new ManualClock(), 100, MINUTE);
    const requesters = new Map([
      ...Array.from({ length: 5 }, (_, i) => [`a${i}`, toRequester("192.0.2.1", `user${i}`)] as const),
      ...Array.from({ length: 5 }, (_, i) => [`b${i}`, toRequester(`198.51.100.${i}`, "ada")] as const),
      ["c0", toRequester("203.0.113.1", "carl")] as const,
    ]);
    for (const [name, requester] of requesters) queue.add(name, requester);
    const served = serveAll(queue, requesters);
    expect(served.slice(0, 3).sort()).toEqual(["a0", "b0", "c0"]);
    expect(served.filter((name) => name.startsWith("a"))).toEqual(["a0", "a1", "a2", "a3", "a4"]);
    expect(served.filter((name) => name.startsWith("b"))).toEqual(["b0", "b1", "b2", "b3", "b4"]);
  });

  test("[ID-18] serves a known address first if the usage is equal, and ignores old usage", () => {
    const clock = new ManualClock();
    const queue = new HashQueue<string>(clock, 100, MINUTE);
    const requesters = new Map([
      ["stranger", toRequester("192.0.2.1", "ada")],
      ["known", toRequester("192.0.2.2", "ben", true)],
      ["heavy", toRequester("192.0.2.3", "carl", true)],
    ]);
    const heavyUser = requesters.get("heavy") as ReturnType<typeof toRequester>;
    for (let i = 0; i < 10; i++) queue.recordUse(heavyUser);
    const drainQueue = (): string[] => {
      for (const [name, requester] of requesters) queue.add(name, requester);
      const order: string[] = [];
      for (let { next } = queue.next(); next !== undefined; { next } = queue.next()) order.push(next);
      return order;
    };
    expect(drainQueue()).toEqual(["known", "stranger", "heavy"]);
    clock.advance(10 * MINUTE);
    expect(drainQueue()).toEqual(["known", "heavy", "stranger"]);
  });

  test("[ID-18] serves requests of equal priority in order of arrival, or newest first while the queue is long", () => {
    const queue = new HashQueue<number>(new ManualClock(), 100, MINUTE);
    for (let i = 0; i < 40; i++) queue.add(i, toRequester(`192.0.2.${i}`, `user${i}`));
    const order: (number | undefined)[] = [];
    while (queue.size > 0) order.push(queue.next().next);
    const newest = Array.from({ length: 24 }, (_, i) => 39 - i);
    expect(order).toEqual([...newest, ...Array.from({ length: 16 }, (_, i) => i)]);
  });

  test("[ID-18] drops a request of the heaviest user when it is full, and releases requests that waited too long", () => {
    const clock = new ManualClock();
    const queue = new HashQueue<string>(clock, 3, MINUTE);
    queue.recordUse(toRequester("192.0.2.1", "x"));
    for (const name of ["a1", "a2"]) expect(queue.add(name, toRequester("192.0.2.1", name))).toBeUndefined();
    expect(queue.add("b", toRequester("192.0.2.2", "b"))).toBeUndefined();
    expect(queue.add("c", toRequester("192.0.2.3", "c"))).toBe("a2");
    expect(queue.add("a3", toRequester("192.0.2.1", "a3"))).toBe("a3");
    clock.advance(MINUTE + 1);
    expect(queue.next()).toEqual({ next: undefined, late: ["a1", "b", "c"] });
    expect(queue.size).toBe(0);
  });
});
