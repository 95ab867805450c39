// Signing in while ninety connections guess passwords from many addresses.
import { expect, test } from "bun:test";
import { fileURLToPath } from "node:url";
import { Client } from "#src/client.ts";
import { serverForFile } from "#test/support/for-file.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { fetchStatus, newPerson, PASSWORD } from "./people.ts";

const PROGRAM = fileURLToPath(new URL("./flood-process.ts", import.meta.url));
const PEOPLE = ["ann", "bob", "cas", "dot"];
const SIGN_INS = 6;
/** On an idle machine, a hash takes at most 0.1 seconds, so this many, two at a time, take less than two seconds. */
const MAX_EARLIER_HASHES = 30;

const { server, admin } = await serverForFile({
  env: { SLIPWAY_TRUSTED_PROXIES: "127.0.0.1" },
  usesRealHashCost: true,
});
const people = [];
for (const name of PEOPLE) people.push(await newPerson(admin, name));
const ann = people[0]?.client as Client;

/** The number of passwords that the server has checked. */
let hashCount = 0;
for (const { accounts } of server.contexts) {
  const verify = accounts.passwords.verify.bind(accounts.passwords);
  accounts.passwords.verify = (...args) =>
    verify(...args).finally(() => {
      hashCount += 1;
    });
}

const signIn = (name: string, address: string, password = PASSWORD): Promise<Response> =>
  new Client(server.url).fetch(
    "POST",
    "/api/v2/users/login",
    { email: `${name}@example.com`, password },
    { headers: { "x-forwarded-for": address } },
  );

/** Runs a flood until the end of the scope. */
const startFlood = async (pattern: string) => {
  const child = Bun.spawn([process.execPath, PROGRAM, server.url.href, pattern, "ann@example.com"], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const lines = child.stdout
    .pipeThrough(new TextDecoderStream() as never)
    .getReader() as ReadableStreamDefaultReader<string>;
  expect((await lines.read()).value).toBe("hot\n");
  return {
    async end(): Promise<Record<string, number>> {
      await child.stdin.end();
      const { value } = await lines.read();
      await child.exited;
      return JSON.parse(value as string);
    },
  };
};

test.each(["an address for each request", "everybody at one account"])(
  "[ID-18][ID-19] six correct sign-ins succeed in time while ninety connections guess: %s",
  async (pattern) => {
    for (const name of PEOPLE) expect((await signIn(name, "192.0.2.7")).status).toBe(201);
    const flood = await startFlood(pattern);
    const hashesBefore: number[] = [];
    for (let i = 0; i < SIGN_INS; i++) {
      // Some sign-ins come from known addresses, others not. A user under attack signs in from a known address.
      const isUnderAttack = pattern === "everybody at one account" && i % 4 === 0;
      const before = hashCount;
      const { status } = await signIn(PEOPLE[i % 4] as string, i < 4 || isUnderAttack ? "192.0.2.7" : `203.0.113.${i}`);
      hashesBefore.push(hashCount - before - 1);
      expect(status).toBe(201);
    }
    expect(await fetchStatus(ann, "GET", "/users/me")).toBe(200);
    const statuses = await flood.end();
    expect(Math.max(...hashesBefore)).toBeLessThan(MAX_EARLIER_HASHES);
    expect(statuses[401]).toBeGreaterThan(0);
    expect(statuses[201]).toBeUndefined();
  },
);

test("[ID-19] the user of an account under attack can still sign in from a known address", async () => {
  const clock = new ManualClock();
  await using quietServer = await startTestServer({ clock, env: { SLIPWAY_TRUSTED_PROXIES: "127.0.0.1" } });
  const loginFrom = (address: string, password: string) =>
    new Client(quietServer.url).fetch(
      "POST",
      "/api/v2/users/login",
      { email: ADMIN.email, password },
      { headers: { "x-forwarded-for": address } },
    );
  /** Advances the clock until all requests have a response. The server delays responses to guesses by up to two seconds. */
  const awaitResponses = async (requests: readonly Promise<Response>[]): Promise<Response[]> => {
    let isComplete = false;
    const responses = Promise.all(requests).finally(() => {
      isComplete = true;
    });
    await until(() => {
      if (!isComplete) clock.advance(250);
      return isComplete;
    });
    return responses;
  };
  const firstResponse = await loginFrom("192.0.2.7", ADMIN.password);
  const { session_token } = (await firstResponse.json()) as { session_token: string };
  const statuses: number[] = [];
  for (let from = 0; from < 110; from += 10) {
    const guesses = Array.from({ length: 10 }, (_, i) => loginFrom(`198.51.100.${from + i}`, "wrong"));
    for (const { status } of await awaitResponses(guesses)) statuses.push(status);
  }
  expect(statuses.filter((status) => status === 401)).toHaveLength(100);
  expect(statuses.filter((status) => status === 429)).toHaveLength(10);
  const fromUnknownAddress = await loginFrom("203.0.113.1", ADMIN.password);
  expect(fromUnknownAddress.status).toBe(429);
  expect(Number(fromUnknownAddress.headers.get("retry-after"))).toBeGreaterThan(600);
  expect((await loginFrom("192.0.2.7", "mistyped")).status).toBe(401);
  expect((await loginFrom("192.0.2.7", ADMIN.password)).status).toBe(201);
  const session = new Client(quietServer.url).withToken(session_token);
  expect(await fetchStatus(session, "GET", "/users/me")).toBe(200);
  const change = (old_password: string) =>
    fetchStatus(session, "PUT", "/users/me/password", { old_password, password: PASSWORD });
  expect(await change("wrong")).toBe(400);
  expect(await change(ADMIN.password)).toBe(204);
});
