// Rate limits per minute of users, anonymous networks, programs on this machine, and agents.
import { expect } from "bun:test";
import { Client } from "#src/client.ts";
import { usesActiveNodes } from "#test/support/cluster/active-nodes.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { testSingleServer } from "#test/support/one-server.ts";
import { seedAgent } from "#test/support/seed.ts";
import { ADMIN, startTestServer, type TestServer } from "#test/support/server.ts";

// Nodes exchange their counts with a delay, so the total number of accepted requests is not exact.
const test = usesActiveNodes ? testSingleServer("counts") : testInProcess;

/** Makes this many calls one after the other, and returns how often each status occurred and the last response. */
const callRepeatedly = async (
  server: TestServer,
  count: number,
  headers: Record<string, string>,
  path = "/api/v2/users/me",
) => {
  const counts: Record<number, number> = {};
  let last = new Response();
  for (let i = 0; i < count; i++) {
    last = await fetch(new URL(path, server.url), { headers });
    await last.clone().body?.cancel();
    counts[last.status] = (counts[last.status] ?? 0) + 1;
  }
  return { counts, last };
};

test("[OP-15] limits calls per minute for each user and anonymous network, and says how long to wait", async () => {
  const clock = new ManualClock();
  const env = { SLIPWAY_API_RATE_LIMIT: "20", SLIPWAY_TRUSTED_PROXIES: "127.0.0.1" };
  await using server = await startTestServer({ clock, env });
  const toAddressHeaders = (address: string) => ({ "x-forwarded-for": address });
  const { token } = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const tokenHeaders = { "service-session-token": token as string };

  const userCalls = await callRepeatedly(server, 23, { ...tokenHeaders, ...toAddressHeaders("203.0.113.7") });
  expect(userCalls.counts).toEqual({ 200: 20, 429: 3 });
  expect(Number(userCalls.last.headers.get("retry-after"))).toBeWithin(1, 61);
  expect(await userCalls.last.json()).toEqual({
    message: "Too many requests: at most 20 a minute are answered.",
    detail: expect.stringContaining("seconds"),
  });
  // The same user from another address shares the limit; strangers in that network, pages and health checks are not affected.
  expect((await callRepeatedly(server, 1, { ...tokenHeaders, ...toAddressHeaders("198.51.100.1") })).counts).toEqual({
    429: 1,
  });
  expect((await callRepeatedly(server, 21, toAddressHeaders("203.0.113.7"))).counts).toEqual({ 401: 20, 429: 1 });
  expect((await callRepeatedly(server, 11, toAddressHeaders("2001:db8::1"))).counts).toEqual({ 401: 11 });
  expect((await callRepeatedly(server, 10, toAddressHeaders("2001:db8::ffff:2"))).counts).toEqual({ 401: 9, 429: 1 });
  expect((await callRepeatedly(server, 25, toAddressHeaders("203.0.113.7"), "/healthz")).counts).toEqual({ 200: 25 });
  // Agents have their own limits.
  const { agent_token } = await seedAgent(server);
  const agent = { "service-session-token": agent_token, ...toAddressHeaders("203.0.113.7") };
  expect((await callRepeatedly(server, 25, agent, "/api/v2/workspaceagents/me/gitsshkey")).counts).toEqual({ 200: 25 });
  // The limit ends after a minute.
  clock.advance(61_000);
  expect((await callRepeatedly(server, 1, tokenHeaders)).counts).toEqual({ 200: 1 });
  // Uploads have a lower limit.
  const upload = () =>
    fetch(new URL("/api/v2/files", server.url), {
      method: "POST",
      body: "no archive",
      headers: { ...tokenHeaders, "content-type": "application/x-tar" },
    }).then(({ status }) => status);
  const uploads: number[] = [];
  for (let i = 0; i < 13; i++) uploads.push(await upload());
  expect(uploads.filter((status) => status === 429)).toHaveLength(1);
});

test("[OP-16] the default limit is 512 for remote callers; programs on this machine have none", async () => {
  await using server = await startTestServer({ clock: new ManualClock() });
  expect((await callRepeatedly(server, 520, {}, "/api/v2/buildinfo")).counts).toEqual({ 200: 520 });
  // A local proxy that is not configured must not count as this machine.
  const proxied = await callRepeatedly(server, 514, { "x-forwarded-for": "203.0.113.7" }, "/api/v2/buildinfo");
  expect(proxied.counts).toEqual({ 200: 512, 429: 2 });
  await using unlimitedServer = await startTestServer({
    clock: new ManualClock(),
    env: { SLIPWAY_API_RATE_LIMIT: "0" },
  });
  const unlimited = await callRepeatedly(
    unlimitedServer,
    520,
    { "x-forwarded-for": "203.0.113.7" },
    "/api/v2/buildinfo",
  );
  expect(unlimited.counts).toEqual({ 200: 520 });
});
