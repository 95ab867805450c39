// Tokens over time: renewed before they expire and only once, kept if the provider is down, given up if it rejects them.
import { expect, test } from "bun:test";
import type { ExternalAuthList } from "#schema/users/external-auth.ts";
import { Client } from "#src/client.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { seedAgent } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";
import { FakeProvider } from "./provider.ts";
import { awaitRejection, getAgentToken, link, startWith } from "./world.ts";

const EA = "/api/v2/external-auth";

/** A workspace whose owner has linked an account, with a stopped clock. */
const openLinkedWorld = async (provider: FakeProvider, more: Record<string, unknown> = {}) => {
  const clock = new ManualClock();
  const server = await startWith([provider.setting("git", more)], { clock });
  const { agent_token, owner_token } = await seedAgent(server);
  const owner = new Client(server.url, owner_token);
  await link(owner, provider, "git");
  const token = () => getAgentToken(server, agent_token, "id=git");
  return { clock, server, owner, token, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
};

test("[EA-7] a token is refreshed before it expires, once for all callers, and the rotated refresh token is stored", async () => {
  using provider = new FakeProvider();
  await using at = await openLinkedWorld(provider);
  const first = (await at.token()).access_token;
  at.clock.advance(3_539_000);
  expect((await at.token()).access_token).toBe(first);
  at.clock.advance(1_000);
  expect(provider.countRequests("/token")).toBe(1);
  const gate = Promise.withResolvers<void>();
  provider.gate = gate.promise;
  const asking = Array.from({ length: 12 }, at.token);
  await until(() => provider.countRequests("/token") >= 2);
  gate.resolve();
  const second = new Set((await Promise.all(asking)).map(({ access_token }) => access_token));
  expect([second.size, second.has(first), provider.countRequests("/token")]).toEqual([1, false, 2]);
  at.clock.advance(3_600_000);
  expect(second.has((await at.token()).access_token)).toBe(false);
  expect(provider.countRequests("/token")).toBe(3);
});

test("[EA-7] a refresh token that is not rotated is reused", async () => {
  using provider = new FakeProvider();
  provider.rotates = false;
  await using at = await openLinkedWorld(provider);
  for (const count of [2, 3]) {
    at.clock.advance(3_600_000);
    expect((await at.token()).access_token).toContain("access");
    expect(provider.countRequests("/token")).toBe(count);
  }
});

test("[EA-7] if refreshing is disabled, the owner links again", async () => {
  using other = new FakeProvider();
  await using off = await openLinkedWorld(other, { no_refresh: true });
  off.clock.advance(3_600_000);
  expect((await off.owner.get<ExternalAuthList>(EA)).links[0]).toMatchObject({ authenticated: false });
  expect((await off.token()).url).toContain("/external-auth/git");
  expect(other.countRequests("/token")).toBe(1);
  await link(off.owner, other, "git");
  expect((await off.token()).access_token).toContain("access");
});

test("[EA-7] when the provider refuses a refresh, the owner must link again, and the provider is not called again", async () => {
  using provider = new FakeProvider();
  await using at = await openLinkedWorld(provider);
  provider.revokeAll(true);
  at.clock.advance(3_600_000);
  expect(await at.token()).toMatchObject({ access_token: "", url: new URL("/external-auth/git", at.server.url).href });
  expect(await at.token()).toMatchObject({ access_token: "" });
  expect(provider.countRequests("/token")).toBe(2);
  const [failed] = (await at.owner.get<ExternalAuthList>(EA)).links;
  expect(failed).toMatchObject({ authenticated: false, validate_error: "The provider refused (invalid_grant)." });
});

test("[EA-7] while the provider is down, a valid token is returned, an expired one is 503, and the link is kept", async () => {
  using provider = new FakeProvider();
  await using at = await openLinkedWorld(provider, { validate_url: undefined });
  const { access_token } = await at.token();
  for (let i = 0; i < 2; i++)
    provider.mishaps.push({ path: "/token", answer: () => new Response("", { status: 503 }) });
  at.clock.advance(3_550_000);
  expect((await at.token()).access_token).toBe(access_token);
  at.clock.advance(100_000);
  expect((await awaitRejection(at.token())).status).toBe(503);
  expect((await at.token()).access_token).toContain("access-canary");
});

test("[EA-10] a link removed while it is refreshed stays removed", async () => {
  using provider = new FakeProvider();
  await using at = await openLinkedWorld(provider);
  at.clock.advance(3_600_000);
  const gate = Promise.withResolvers<void>();
  provider.gate = gate.promise;
  const asking = at.token();
  await until(() => provider.countRequests("/token") >= 2);
  await at.owner.delete(`${EA}/git`);
  gate.resolve();
  expect((await asking).access_token).toBe("");
  expect((await at.owner.get<ExternalAuthList>(EA)).links).toEqual([]);
});

test("[EA-10] a revocation at the provider is noticed within a minute, and the token is refreshed if possible", async () => {
  using provider = new FakeProvider();
  await using at = await openLinkedWorld(provider);
  const first = (await at.token()).access_token;
  provider.revokeAll();
  at.clock.advance(60_000);
  const second = (await at.token()).access_token;
  expect([second === first, provider.isActiveToken(second)]).toEqual([false, true]);
  provider.revokeAll(true);
  at.clock.advance(60_000);
  expect((await at.token()).url).toContain("/external-auth/git");
});
