// Linking an account by signing in at the provider or by device code, and unlinking it.
import { expect, test } from "bun:test";
import type {
  ExternalAuth,
  ExternalAuthDevice,
  ExternalAuthList,
  ExternalAuthUnlinked,
} from "#schema/users/external-auth.ts";
import { Client } from "#src/client.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { seedUser } from "#test/support/seed.ts";
import { ADMIN } from "#test/support/server.ts";
import { CLIENT, FakeProvider } from "./provider.ts";
import { awaitRejection, link, startWith } from "./world.ts";

const EA = "/api/v2/external-auth";
const DEVICE_FLOW = { device_flow: true };

test("[EA-5][ID-13] finds users by their linked github.com account until they unlink it", async () => {
  using provider = new FakeProvider();
  const github = provider.setting("github", { type: "github" });
  await using server = await startWith([github, provider.setting("git")]);
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const { token, user_id } = await seedUser(server);
  const ann = admin.withToken(token);
  const searchUsers = async (q: string) => {
    const { users } = await admin.get<{ users: { id: string }[] }>(`/api/v2/users?q=${encodeURIComponent(q)}`);
    return users.map(({ id }) => id);
  };
  await link(ann, provider, "git");
  expect(await searchUsers("github_com_user_id:583231")).toEqual([]);
  await link(ann, provider, "github");
  expect(await searchUsers("github_com_user_id:583231")).toEqual([user_id]);
  expect(await searchUsers("github_com_user_id:583232")).toEqual([]);
  await ann.delete(`${EA}/github`);
  expect(await searchUsers("github_com_user_id:583231")).toEqual([]);
  expect((await awaitRejection(searchUsers("github_com_user_id:octo"))).status).toBe(400);
});

test("[EA-5] signing in at the provider links an account; unlinking revokes the token", async () => {
  using provider = new FakeProvider();
  await using server = await startWith([provider.setting("git"), provider.setting("codes", DEVICE_FLOW)]);
  const ann = new Client(server.url, (await seedUser(server)).token);
  const before = await ann.get<ExternalAuthList>(EA);
  expect(before.providers.map(({ id, device }) => [id, device])).toEqual([
    ["git", false],
    ["codes", true],
  ]);
  expect(before.links).toEqual([]);
  expect(JSON.stringify(before)).not.toContain(CLIENT.secret);
  const { url } = await ann.post<{ url: string }>(`${EA}/git/start`);
  const query = Object.fromEntries(new URL(url).searchParams);
  expect(query).toMatchObject({ client_id: CLIENT.id, response_type: "code", scope: "read write", kept: "1" });
  expect(query).toMatchObject({
    code_challenge_method: "S256",
    redirect_uri: new URL("/external-auth/git/callback", server.url).href,
  });
  const { code, state } = provider.approve(url);
  await ann.post(`${EA}/git/callback`, { code, state });
  const [linked] = (await ann.get<ExternalAuthList>(EA)).links;
  expect(linked).toMatchObject({
    provider_id: "git",
    authenticated: true,
    has_refresh_token: true,
    validate_error: "",
  });
  expect(await ann.get<ExternalAuth>(`${EA}/git`)).toEqual({
    authenticated: true,
    device: false,
    display_name: "Git of git",
    supports_revocation: true,
    // The provider sent an invalid page URL.
    user: { login: "octo-ann", name: "Ann at the provider", profile_url: "" },
  });
  expect(await ann.delete<ExternalAuthUnlinked>(`${EA}/git`)).toEqual({ token_revoked: true });
  expect(provider.countRequests("/revoke")).toBe(1);
  expect((await ann.get<ExternalAuthList>(EA)).links).toEqual([]);
  expect(await ann.get<ExternalAuth>(`${EA}/git`)).toMatchObject({ authenticated: false, user: null });
  expect((await awaitRejection(ann.delete(`${EA}/git`))).status).toBe(404);
  expect((await awaitRejection(ann.get(`${EA}/none`))).status).toBe(404);
});

test("[EA-5] a callback is valid once, for ten minutes, for the session and provider that started it", async () => {
  using provider = new FakeProvider();
  const clock = new ManualClock();
  await using server = await startWith([provider.setting("git"), provider.setting("other")], { clock });
  const ann = new Client(server.url, (await seedUser(server)).token);
  const eve = new Client(server.url, (await seedUser(server)).token);
  const startLogin = async () => provider.approve((await ann.post<{ url: string }>(`${EA}/git/start`)).url);
  const otherSession = ann.withToken((await ann.post<{ key: string }>("/api/v2/users/me/keys")).key);
  const { code, state } = await startLogin();
  for (const [client, id, body] of [
    [eve, "git", { code, state }],
    [otherSession, "git", { code, state }],
    [ann, "other", { code, state }],
    [ann, "git", { code, state: `${state.slice(0, -2)}AA` }],
    [ann, "git", { code, state: "made-up" }],
  ] as const) {
    expect((await awaitRejection(client.post(`${EA}/${id}/callback`, body))).status).toBe(400);
  }
  expect(provider.countRequests("/token")).toBe(0);
  clock.advance(599_000);
  await ann.post(`${EA}/git/callback`, { code, state });
  expect(await awaitRejection(ann.post(`${EA}/git/callback`, { code, state }))).toEqual({
    status: 400,
    detail: "invalid_grant",
  });
  const expiredLogin = await startLogin();
  clock.advance(600_000);
  expect(
    (await awaitRejection(ann.post(`${EA}/git/callback`, { code: expiredLogin.code, state: expiredLogin.state })))
      .status,
  ).toBe(400);
  const mixed = { code: (await startLogin()).code, state: (await startLogin()).state };
  // The provider rejects the code, because the verifier belongs to another sign-in.
  expect(await awaitRejection(ann.post(`${EA}/git/callback`, mixed))).toEqual({
    status: 400,
    detail: "invalid_grant",
  });
});

test("[EA-6] a device code links the account once its owner has entered it; other users cannot use it", async () => {
  using provider = new FakeProvider();
  await using server = await startWith([provider.setting("codes", DEVICE_FLOW), provider.setting("git")]);
  const ann = new Client(server.url, (await seedUser(server)).token);
  const eve = new Client(server.url, (await seedUser(server)).token);
  const path = `${EA}/codes/device`;
  const started = await ann.get<ExternalAuthDevice>(path);
  expect(started).toMatchObject({
    expires_in: 600,
    interval: 5,
    verification_uri: new URL("/device", provider.url).href,
  });
  const poll = (client: Client, { device_code }: ExternalAuthDevice) =>
    awaitRejection(client.post(path, { device_code }));
  expect(await poll(ann, started)).toEqual({ status: 400, detail: "authorization_pending" });
  provider.enterUserCode(started.user_code);
  expect((await poll(eve, started)).status).toBe(400);
  expect(provider.countRequests("/token")).toBe(1);
  expect((await poll(ann, started)).status).toBe(200);
  expect(await ann.get<ExternalAuth>(`${EA}/codes`)).toMatchObject({ authenticated: true, device: true });
  const second = await ann.get<ExternalAuthDevice>(path);
  provider.enterUserCode(second.user_code, "denied");
  expect(await poll(ann, second)).toEqual({ status: 400, detail: "access_denied" });
  provider.failures.push({ path: "/token", answer: () => Response.json({ error: "slow_down" }, { status: 400 }) });
  expect(await poll(ann, second)).toEqual({ status: 400, detail: "slow_down" });
  expect((await awaitRejection(ann.get(`${EA}/git/device`))).status).toBe(400);
  expect((await awaitRejection(ann.post(`${EA}/codes/start`))).status).toBe(400);
});

const INVALID_RESPONSES: [string, () => Response][] = [
  ["a page of HTML", () => new Response("<html>502 from a proxy</html>", { headers: { "content-type": "text/html" } })],
  ["5xx", () => new Response("oh no", { status: 502 })],
  ["truncated JSON", () => new Response('{"access_token": "x')],
  ["a list", () => Response.json(["access_token"])],
  ["no token", () => Response.json({ token_type: "bearer" })],
  ["a token that is a number", () => Response.json({ access_token: 42 })],
  ["a token with a line end", () => Response.json({ access_token: "x\r\nSet-Cookie: a=b" })],
  ["a redirect", () => new Response(null, { status: 302, headers: { location: "http://127.0.0.1:1/steal" } })],
  ["an oversized response", () => new Response("x".repeat(1_100_000))],
  ["an empty response", () => new Response("")],
];

test("[EA-8] an invalid response of the provider links nothing, and the person can try again", async () => {
  using provider = new FakeProvider();
  await using server = await startWith([provider.setting("git")]);
  const ann = new Client(server.url, (await seedUser(server)).token);
  for (const [name, respond] of INVALID_RESPONSES) {
    const { url } = await ann.post<{ url: string }>(`${EA}/git/start`);
    const { code, state } = provider.approve(url);
    provider.failures.push({ path: "/token", answer: respond });
    expect([name, (await awaitRejection(ann.post(`${EA}/git/callback`, { code, state }))).status]).toEqual([name, 503]);
    expect([name, (await ann.get<ExternalAuthList>(EA)).links]).toEqual([name, []]);
    await ann.post(`${EA}/git/callback`, { code, state });
    expect([name, (await ann.get<ExternalAuthList>(EA)).links.length]).toEqual([name, 1]);
    await ann.delete(`${EA}/git`);
  }
});

testInProcess("[EA-8] a silent provider times out after ten seconds", async () => {
  using provider = new FakeProvider();
  const clock = new ManualClock();
  await using server = await startWith([provider.setting("git")], { clock });
  const ann = new Client(server.url, (await seedUser(server)).token);
  const { code, state } = provider.approve((await ann.post<{ url: string }>(`${EA}/git/start`)).url);
  const received = Promise.withResolvers<void>();
  provider.failures.push({
    path: "/token",
    answer: () => {
      received.resolve();
      return new Response(new ReadableStream({ start: () => {} }));
    },
  });
  const rejection = awaitRejection(ann.post(`${EA}/git/callback`, { code, state }));
  await received.promise;
  clock.advance(10_000);
  expect((await rejection).status).toBe(503);
});

test("[EA-11] unlinks the account even if the provider does not revoke the token, and says so", async () => {
  using provider = new FakeProvider();
  await using server = await startWith([provider.setting("git"), provider.setting("bare", { revoke_url: undefined })]);
  const ann = new Client(server.url, (await seedUser(server)).token);
  await link(ann, provider, "git");
  await link(ann, provider, "bare");
  provider.failures.push({ path: "/revoke", answer: () => new Response("", { status: 500 }) });
  for (const id of ["git", "bare"]) {
    const unlinked = await ann.delete<ExternalAuthUnlinked>(`${EA}/${id}`);
    expect([unlinked.token_revoked, typeof unlinked.token_revocation_error]).toEqual([false, "string"]);
  }
  expect((await ann.get<ExternalAuthList>(EA)).links).toEqual([]);
});
