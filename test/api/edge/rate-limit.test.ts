// Rate limits per minute: of a user, of a stranger's network, of a program on this machine, of an agent.
import { expect } from "bun:test";
import { Client } from "#src/client.ts";
import { usesActiveNodes } from "#test/support/cluster/active-nodes.ts";
import { testInside } from "#test/support/inside.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { testSingleServer } from "#test/support/one-server.ts";
import { seedAgent } from "#test/support/seed.ts";
import { ADMIN, startTestServer, type TestServer } from "#test/support/server.ts";

// Nodes exchange their counts with a delay, so the total number of accepted requests is not exact.
const test = usesActiveNodes ? testSingleServer("counts") : testInside;

/** Makes this many calls one after the other and returns their statuses. */
const calls = async (server: TestServer, count: number, headers: Record<string, string>, path = "/api/v2/users/me") => {
  const seen: Record<number, number> = {};
  let last = new Response();
  for (let i = 0; i < count; i++) {
    last = await fetch(new URL(path, server.url), { headers });
    await last.clone().body?.cancel();
    seen[last.status] = (seen[last.status] ?? 0) + 1;
  }
  return { seen, last };
};

test("[OP-15] the number of calls per minute is limited for each user and each anonymous network; 429 says how long to wait", async () => {
  const clock = new ManualClock();
  const env = { SLIPWAY_API_RATE_LIMIT: "20", SLIPWAY_TRUSTED_PROXIES: "127.0.0.1" };
  await using server = await startTestServer({ clock, env });
  const toAddressHeaders = (address: string) => ({ "x-forwarded-for": address });
  const { token } = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const me = { "service-session-token": token as string };

  const ownCalls = await calls(server, 23, { ...me, ...toAddressHeaders("203.0.113.7") });
  expect(ownCalls.seen).toEqual({ 200: 20, 429: 3 });
  expect(Number(ownCalls.last.headers.get("retry-after"))).toBeWithin(1, 61);
  expect(await ownCalls.last.json()).toEqual({
    message: "Too many requests: at most 20 a minute are answered.",
    detail: expect.stringContaining("seconds"),
  });
  // The same user from another address shares the limit; strangers in that network, pages and health checks are not affected.
  expect((await calls(server, 1, { ...me, ...toAddressHeaders("198.51.100.1") })).seen).toEqual({ 429: 1 });
  expect((await calls(server, 21, toAddressHeaders("203.0.113.7"))).seen).toEqual({ 401: 20, 429: 1 });
  expect((await calls(server, 11, toAddressHeaders("2001:db8::1"))).seen).toEqual({ 401: 11 });
  expect((await calls(server, 10, toAddressHeaders("2001:db8::ffff:2"))).seen).toEqual({ 401: 9, 429: 1 });
  expect((await calls(server, 25, toAddressHeaders("203.0.113.7"), "/healthz")).seen).toEqual({ 200: 25 });
  // Agents have their own limits, and stream freely.
  const { agent_token } = await seedAgent(server);
  const agent = { "service-session-token": agent_token, ...toAddressHeaders("203.0.113.7") };
  expect((await calls(server, 25, agent, "/api/v2/workspaceagents/me/gitsshkey")).seen).toEqual({ 200: 25 });
  // After a minute, it is over.
  clock.advance(61_000);
  expect((await calls(server, 1, me)).seen).toEqual({ 200: 1 });
  // Uploads have a lower limit.
  const upload = () =>
    fetch(new URL("/api/v2/files", server.url), {
      method: "POST",
      body: "no archive",
      headers: { ...me, "content-type": "application/x-tar" },
    }).then(({ status }) => status);
  const uploads: number[] = [];
  for (let i = 0; i < 13; i++) uploads.push(await upload());
  expect(uploads.filter((status) => status === 429)).toHaveLength(1);
});

test("[OP-16] the default is 512 for remote callers and unlimited for programs on this machine", async () => {
  await using server = await startTestServer({ clock: new ManualClock() });
  expect((await calls(server, 520, {}, "/api/v2/buildinfo")).seen).toEqual({ 200: 520 });
  // A local proxy that is not configured must not count as this machine.
  const proxied = await calls(server, 514, { "x-forwarded-for": "203.0.113.7" }, "/api/v2/buildinfo");
  expect(proxied.seen).toEqual({ 200: 512, 429: 2 });
  await using free = await startTestServer({ clock: new ManualClock(), env: { SLIPWAY_API_RATE_LIMIT: "0" } });
  const unlimited = await calls(free, 520, { "x-forwarded-for": "203.0.113.7" }, "/api/v2/buildinfo");
  expect(unlimited.seen).toEqual({ 200: 520 });
});
