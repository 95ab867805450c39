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
/** A hash takes at most a tenth of a second on a machine that does nothing else, so this many, two at a time, take less than two seconds. */
const MAX_EARLIER_HASHES = 30;

const { server, admin } = await serverForFile({
  env: { SLIPWAY_TRUSTED_PROXIES: "127.0.0.1" },
  dearPasswords: true,
});
const people = [];
for (const name of PEOPLE) people.push(await newPerson(admin, name));
const ann = people[0]?.client as Client;

/** The number of passwords that the server has checked. */
let hashes = 0;
for (const { accounts } of server.contexts) {
  const verify = accounts.passwords.verify.bind(accounts.passwords);
  accounts.passwords.verify = (...given) =>
    verify(...given).finally(() => {
      hashes += 1;
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
const flood = async (how: string) => {
  const child = Bun.spawn([process.execPath, PROGRAM, server.url.href, how, "ann@example.com"], {
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
  "[ID-18][ID-19] six of six right sign-ins are answered in time while ninety connections guess: %s",
  async (how) => {
    for (const name of PEOPLE) expect((await signIn(name, "192.0.2.7")).status).toBe(201);
    const flooding = await flood(how);
    const earlier: number[] = [];
    for (let i = 0; i < SIGN_INS; i++) {
      // Some from known addresses, some not; a user whose password is guessed from everywhere signs in from a known one.
      const isGuessedAt = how === "everybody at one account" && i % 4 === 0;
      const before = hashes;
      const { status } = await signIn(PEOPLE[i % 4] as string, i < 4 || isGuessedAt ? "192.0.2.7" : `203.0.113.${i}`);
      earlier.push(hashes - before - 1);
      expect(status).toBe(201);
    }
    expect(await fetchStatus(ann, "GET", "/users/me")).toBe(200);
    const statuses = await flooding.end();
    expect(Math.max(...earlier)).toBeLessThan(MAX_EARLIER_HASHES);
    expect(statuses[401]).toBeGreaterThan(0);
    expect(statuses[201]).toBeUndefined();
  },
);

test("[ID-19] an account under attack from everywhere can still be signed in to from a known address", async () => {
  const clock = new ManualClock();
  await using quiet = await startTestServer({ clock, env: { SLIPWAY_TRUSTED_PROXIES: "127.0.0.1" } });
  const loginFrom = (address: string, password: string) =>
    new Client(quiet.url).fetch(
      "POST",
      "/api/v2/users/login",
      { email: ADMIN.email, password },
      { headers: { "x-forwarded-for": address } },
    );
  /** Lets time pass until all are answered: the server delays its answers to guesses, by up to two seconds. */
  const awaitAnswers = async (asked: readonly Promise<Response>[]): Promise<Response[]> => {
    let areThere = false;
    const answers = Promise.all(asked).finally(() => {
      areThere = true;
    });
    await until(() => {
      if (!areThere) clock.advance(250);
      return areThere;
    });
    return answers;
  };
  const first = await loginFrom("192.0.2.7", ADMIN.password);
  const { session_token } = (await first.json()) as { session_token: string };
  const statuses: number[] = [];
  for (let from = 0; from < 110; from += 10) {
    const guesses = Array.from({ length: 10 }, (_, i) => loginFrom(`198.51.100.${from + i}`, "wrong"));
    for (const { status } of await awaitAnswers(guesses)) statuses.push(status);
  }
  expect(statuses.filter((status) => status === 401)).toHaveLength(100);
  expect(statuses.filter((status) => status === 429)).toHaveLength(10);
  const strange = await loginFrom("203.0.113.1", ADMIN.password);
  expect(strange.status).toBe(429);
  expect(Number(strange.headers.get("retry-after"))).toBeGreaterThan(600);
  expect((await loginFrom("192.0.2.7", "mistyped")).status).toBe(401);
  expect((await loginFrom("192.0.2.7", ADMIN.password)).status).toBe(201);
  const session = new Client(quiet.url).withToken(session_token);
  expect(await fetchStatus(session, "GET", "/users/me")).toBe(200);
  const change = (old_password: string) =>
    fetchStatus(session, "PUT", "/users/me/password", { old_password, password: PASSWORD });
  expect(await change("wrong")).toBe(400);
  expect(await change(ADMIN.password)).toBe(204);
});
