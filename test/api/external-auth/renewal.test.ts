// Tokens over time: refreshing before expiry, outages of the provider, and revocations.
import { expect, test } from "bun:test";
import type { ExternalAuthList } from "#schema/users/external-auth.ts";
import { Client } from "#src/client.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { seedAgent } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";
import { FakeProvider } from "./provider.ts";
import { awaitRejection, getAgentToken, link, startWith } from "./world.ts";

const EA = "/api/v2/external-auth";

/** A workspace whose owner has linked an account, with a manual clock. */
const openLinkedWorld = async (provider: FakeProvider, overrides: Record<string, unknown> = {}) => {
  const clock = new ManualClock();
  const server = await startWith([provider.setting("git", overrides)], { clock });
  const { agent_token, owner_token } = await seedAgent(server);
  const owner = new Client(server.url, owner_token);
  await link(owner, provider, "git");
  const getToken = () => getAgentToken(server, agent_token, "id=git");
  return { clock, server, owner, getToken, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
};

test("[EA-7] refreshes a token before it expires, once for all callers, and stores the new refresh token", async () => {
  using provider = new FakeProvider();
  await using world = await openLinkedWorld(provider);
  const first = (await world.getToken()).access_token;
  world.clock.advance(3_539_000);
  expect((await world.getToken()).access_token).toBe(first);
  world.clock.advance(1_000);
  expect(provider.countRequests("/token")).toBe(1);
  const gate = Promise.withResolvers<void>();
  provider.gate = gate.promise;
  const pending = Array.from({ length: 12 }, world.getToken);
  await until(() => provider.countRequests("/token") >= 2);
  gate.resolve();
  const second = new Set((await Promise.all(pending)).map(({ access_token }) => access_token));
  expect([second.size, second.has(first), provider.countRequests("/token")]).toEqual([1, false, 2]);
  world.clock.advance(3_600_000);
  expect(second.has((await world.getToken()).access_token)).toBe(false);
  expect(provider.countRequests("/token")).toBe(3);
});

test("[EA-7] reuses a refresh token that the provider does not rotate", async () => {
  using provider = new FakeProvider();
  provider.rotates = false;
  await using world = await openLinkedWorld(provider);
  for (const count of [2, 3]) {
    world.clock.advance(3_600_000);
    expect((await world.getToken()).access_token).toContain("access");
    expect(provider.countRequests("/token")).toBe(count);
  }
});

test("[EA-7] with refreshing disabled, the owner must link again", async () => {
  using provider = new FakeProvider();
  await using world = await openLinkedWorld(provider, { no_refresh: true });
  world.clock.advance(3_600_000);
  expect((await world.owner.get<ExternalAuthList>(EA)).links[0]).toMatchObject({ authenticated: false });
  expect((await world.getToken()).url).toContain("/external-auth/git");
  expect(provider.countRequests("/token")).toBe(1);
  await link(world.owner, provider, "git");
  expect((await world.getToken()).access_token).toContain("access");
});

test("[EA-7] when the provider rejects a refresh, the owner must link again, and no more refreshes happen", async () => {
  using provider = new FakeProvider();
  await using world = await openLinkedWorld(provider);
  provider.revokeAll(true);
  world.clock.advance(3_600_000);
  expect(await world.getToken()).toMatchObject({
    access_token: "",
    url: new URL("/external-auth/git", world.server.url).href,
  });
  expect(await world.getToken()).toMatchObject({ access_token: "" });
  expect(provider.countRequests("/token")).toBe(2);
  const [failed] = (await world.owner.get<ExternalAuthList>(EA)).links;
  expect(failed).toMatchObject({ authenticated: false, validate_error: "The provider refused (invalid_grant)." });
});

test("[EA-7] during an outage of the provider, returns a valid token, 503 for an expired one, and keeps the link", async () => {
  using provider = new FakeProvider();
  await using world = await openLinkedWorld(provider, { validate_url: undefined });
  const { access_token } = await world.getToken();
  for (let i = 0; i < 2; i++)
    provider.failures.push({ path: "/token", answer: () => new Response("", { status: 503 }) });
  world.clock.advance(3_550_000);
  expect((await world.getToken()).access_token).toBe(access_token);
  world.clock.advance(100_000);
  expect((await awaitRejection(world.getToken())).status).toBe(503);
  expect((await world.getToken()).access_token).toContain("access-canary");
});

test("[EA-10] a link that is removed during a refresh stays removed", async () => {
  using provider = new FakeProvider();
  await using world = await openLinkedWorld(provider);
  world.clock.advance(3_600_000);
  const gate = Promise.withResolvers<void>();
  provider.gate = gate.promise;
  const pending = world.getToken();
  await until(() => provider.countRequests("/token") >= 2);
  await world.owner.delete(`${EA}/git`);
  gate.resolve();
  expect((await pending).access_token).toBe("");
  expect((await world.owner.get<ExternalAuthList>(EA)).links).toEqual([]);
});

test("[EA-10] notices a revocation at the provider within a minute, and refreshes the token if possible", async () => {
  using provider = new FakeProvider();
  await using world = await openLinkedWorld(provider);
  const first = (await world.getToken()).access_token;
  provider.revokeAll();
  world.clock.advance(60_000);
  const second = (await world.getToken()).access_token;
  expect([second === first, provider.isActiveToken(second)]).toEqual([false, true]);
  provider.revokeAll(true);
  world.clock.advance(60_000);
  expect((await world.getToken()).url).toContain("/external-auth/git");
});
