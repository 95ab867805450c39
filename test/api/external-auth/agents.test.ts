// Agents' access to their owner's linked accounts: by URL or ID, while waiting, and never to another user's accounts.
import { expect, test } from "bun:test";
import { join } from "node:path";
import type { ExternalAuthList } from "#schema/users/external-auth.ts";
import { Client } from "#src/client.ts";
import { getContext, seedAgent, supersedeAgent } from "#test/support/seed.ts";
import { ADMIN, tempDirectory } from "#test/support/server.ts";
import { readStoredTexts } from "#test/support/stored.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { FakeProvider } from "./provider.ts";
import { awaitRejection, getAgentToken, link, startWith } from "./world.ts";

const ME = "/api/v2/workspaceagents/me";

/** The settings of a provider whose own URLs use https. */
const TLS_PROVIDER = {
  type: "generic",
  client_id: "x",
  client_secret: "y",
  auth_url: "https://auth.example/authorize",
  token_url: "https://auth.example/token",
};

test("[EA-12] an agent selects a provider by a repository URL, by its ID, or by both if they agree", async () => {
  using provider = new FakeProvider();
  await using server = await startWith([
    provider.setting("one"),
    provider.setting("two", { regex: "two\\.example/team" }),
    { id: "hub", type: "github", client_id: "x" },
    provider.setting("three", { regex: "^https://three\\.example", base_url: "https://three.example" }),
    { id: "tls", ...TLS_PROVIDER, regex: "^tls\\.example" },
    { id: "plain", ...TLS_PROVIDER, regex: "^https?://plain\\.example|^http://plain\\.example" },
    { id: "loose", type: "github", client_id: "x", base_url: "https://loose.example", regex: "loose\\.example" },
  ]);
  const { agent_token } = await seedAgent(server);
  const getLinkPath = async (query: string): Promise<string> =>
    new URL((await getAgentToken(server, agent_token, query)).url).pathname;
  expect(await getLinkPath("match=https://one.example/team/repo.git")).toBe("/external-auth/one");
  expect(await getLinkPath("match=two.example/team")).toBe("/external-auth/two");
  expect(await getLinkPath("match=github.com/team/repo")).toBe("/external-auth/hub");
  expect(await getLinkPath("match=https://ann@github.com")).toBe("/external-auth/hub");
  expect(await getLinkPath("match=https://loose.example/a")).toBe("/external-auth/loose");
  expect(await getLinkPath("match=https://tls.example/a")).toBe("/external-auth/tls");
  expect(await getLinkPath("match=http://plain.example/a")).toBe("/external-auth/plain");
  expect((await awaitRejection(getAgentToken(server, agent_token, "match=http://loose.example/a"))).detail).toBe(
    "Change the remote to https: git remote set-url origin https://loose.example/a",
  );
  expect(await getLinkPath("id=two&match=http://two.example/team")).toBe("/external-auth/two");
  for (const [query, status] of [
    ["", 400],
    ["match=&id=", 400],
    ["id=one&match=https://github.com/a", 400],
    ["id=one&listen=perhaps", 400],
    ["id=none", 404],
    ["match=https://github.com.evil.example/", 404],
    ["match=https://evil.example/github.com", 404],
    ["match=http://github.com/a", 404],
    ["match=http://loose.example/a", 404],
    ["match=HTTP://loose.example/a", 404],
    ["match=http://tls.example/a", 404],
    ["match=https://three.example@evil.test/", 404],
    ["match=https://three.example.evil.test/", 404],
    ["match=https://evil.test/https://three.example/", 404],
    ["match=https://xloose.example/a", 404],
    ["match=https://loose.example.evil.test/a", 404],
    ["match=https://evil.test/loose.example", 404],
    ["match=https://evil.test/two.example/team", 404],
    [`match=https://one.example/${"x".repeat(3000)}`, 404],
  ] as const) {
    expect([query, (await awaitRejection(getAgentToken(server, agent_token, query))).status]).toEqual([query, status]);
  }
});

test("[EA-12] git gets the token in each host's format, or the URL to link an account", async () => {
  using provider = new FakeProvider();
  provider.neverExpires = true;
  const types = ["github", "gitlab", "bitbucket-cloud", "bitbucket-server", "gitea", "generic"];
  const overrides = { device_code_url: undefined, base_url: provider.url.href };
  await using server = await startWith(types.map((type) => provider.setting(type, { ...overrides, type })));
  const { agent_token, owner_token } = await seedAgent(server);
  const owner = new Client(server.url, owner_token);
  for (const type of types) {
    expect(await getAgentToken(server, agent_token, `id=${type}`)).toEqual({
      access_token: "",
      username: "",
      password: "",
      type: "",
      token_extra: {},
      url: new URL(`/external-auth/${type}`, server.url).href,
    });
    await link(owner, provider, type);
    const { access_token, username, password, ...rest } = await getAgentToken(server, agent_token, `id=${type}`);
    expect(rest).toEqual({ type, url: "", token_extra: { scope: "read write" } });
    const fixedUsername = { gitlab: "oauth2", "bitbucket-cloud": "x-token-auth", "bitbucket-server": "x-token-auth" }[
      type
    ];
    expect([type, username, password]).toEqual([
      type,
      ...(fixedUsername ? [fixedUsername, access_token] : [access_token, ""]),
    ]);
  }
});

test("[EA-12] returns the expiry time of an expiring token", async () => {
  using provider = new FakeProvider();
  await using server = await startWith([provider.setting("git")]);
  const { agent_token, owner_token } = await seedAgent(server);
  const before = Date.now();
  await link(new Client(server.url, owner_token), provider, "git");
  const { expires_at = "" } = await getAgentToken(server, agent_token, "id=git");
  const lifetimeMs = provider.life * 1000;
  expect(Date.parse(expires_at)).toBeWithin(before + lifetimeMs - 1000, Date.now() + lifetimeMs + 1000);
});

test("[EA-13] returns the token only to the owner's agents that may read the owner's data", async () => {
  using provider = new FakeProvider();
  await using server = await startWith([provider.setting("git")]);
  const restrictedAgent = await seedAgent(server, { agent: { api_key_scope: "no_user_data" } });
  const otherAgent = await seedAgent(server);
  await link(new Client(server.url, restrictedAgent.owner_token), provider, "git");
  expect((await awaitRejection(getAgentToken(server, restrictedAgent.agent_token, "id=git"))).status).toBe(403);
  expect((await getAgentToken(server, otherAgent.agent_token, "id=git")).access_token).toBe("");
  expect((await awaitRejection(getAgentToken(server, restrictedAgent.owner_token, "id=git"))).status).toBe(401);
});

test("[EA-14] a waiting agent gets the token when its owner links an account", async () => {
  using provider = new FakeProvider();
  await using server = await startWith([provider.setting("git")]);
  const { owner_id, owner_token, agent_token } = await seedAgent(server);
  const { topics, streams } = getContext(server);
  const waiting = getAgentToken(server, agent_token, "id=git&listen=true");
  await until(() => topics.hasListeners("external_auth", owner_id));
  await link(new Client(server.url, owner_token), provider, "git");
  expect((await waiting).access_token).toContain("access-canary");
  expect(streams.size).toBe(0);
  expect((await getAgentToken(server, agent_token, "id=git&listen=true")).access_token).toContain("access");
});

test("[EA-14] the wait ends with the request, the agent's build or the server", async () => {
  using provider = new FakeProvider();
  await using server = await startWith([provider.setting("git")]);
  const { topics, streams } = getContext(server);
  const awaitFollower = async (owner_id: string, isExpected = true) => {
    await until(() => topics.hasListeners("external_auth", owner_id) === isExpected);
  };
  const agent = await seedAgent(server);
  const abort = new AbortController();
  const path = `${ME}/external-auth?id=git&listen=1`;
  const aborted = new Client(server.url, agent.agent_token).get(path, { signal: abort.signal }).catch(() => "aborted");
  await awaitFollower(agent.owner_id);
  abort.abort();
  expect(await aborted).toBe("aborted");
  await awaitFollower(agent.owner_id, false);
  const superseded = awaitRejection(getAgentToken(server, agent.agent_token, "id=git&listen=1"));
  await awaitFollower(agent.owner_id);
  await supersedeAgent(server, agent);
  expect((await superseded).status).toBe(503);
  expect(streams.size).toBe(0);
  const otherAgent = await seedAgent(server);
  const stopped = awaitRejection(getAgentToken(server, otherAgent.agent_token, "id=git&listen=1"));
  await awaitFollower(otherAgent.owner_id);
  streams.endAll();
  expect((await stopped).status).toBe(503);
  expect(streams.size).toBe(0);
});

test("[EA-15] a template version lists the accounts that it needs, with link URLs and states", async () => {
  using provider = new FakeProvider();
  await using server = await startWith([provider.setting("git")]);
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const external_auth = [{ id: "git" }, { id: "elsewhere", optional: true }];
  const resources = [{ name: "main", agents: [{ name: "main" }] }];
  const template = await makeTemplate(admin, JSON.stringify({ provisioner: "echo", external_auth, resources }));
  const listExternalAuth = () =>
    admin.get<unknown[]>(`/api/v2/templateversions/${template.active_version_id}/external-auth`);
  const git = { id: "git", type: "generic", display_name: "Git of git", display_icon: "", optional: false };
  const unknownProvider = { id: "elsewhere", type: "", display_name: "elsewhere", display_icon: "", optional: true };
  const getLinkUrl = (name: string): string => new URL(`/external-auth/${name}`, server.url).href;
  expect(await listExternalAuth()).toEqual([
    { ...git, authenticate_url: getLinkUrl("git"), authenticated: false },
    { ...unknownProvider, authenticate_url: getLinkUrl("elsewhere"), authenticated: false },
  ]);
  await link(admin, provider, "git");
  expect((await listExternalAuth())[0]).toMatchObject({ id: "git", authenticated: true });
});

test("[EA-16] removed endpoints name their replacement", async () => {
  using provider = new FakeProvider();
  await using server = await startWith([provider.setting("git")]);
  const { agent_id, agent_token, owner_token } = await seedAgent(server);
  const agent = new Client(server.url, agent_token);
  expect(await awaitRejection(agent.get(`${ME}/gitauth`))).toEqual({
    status: 410,
    detail: "Use workspaceagents/me/external-auth.",
  });
  const logs = `/api/v2/workspaceagents/${agent_id}/startup-logs`;
  const startupLogs = await awaitRejection(new Client(server.url, owner_token).get(logs));
  expect([startupLogs.status, startupLogs.detail.endsWith("/logs.")]).toEqual([410, true]);
});

test("[EA-9] tokens appear in no file of the data directory, survive a restart, and are deleted with their user", async () => {
  using directory = tempDirectory();
  using provider = new FakeProvider();
  const data = join(directory.path, "data");
  const settings = [provider.setting("git")];
  const { agent_token, token } = await (async () => {
    await using server = await startWith(settings, { directory: data });
    const seeded = await seedAgent(server);
    await link(new Client(server.url, seeded.owner_token), provider, "git");
    return { ...seeded, token: (await getAgentToken(server, seeded.agent_token, "id=git")).access_token };
  })();
  expect(token).toContain("canary");
  const texts = await readStoredTexts(data);
  expect(texts.some((text) => text.includes("external_auth_links"))).toBe(true);
  expect(texts.filter((text) => text.includes("canary"))).toEqual([]);
  await using server = await startWith(settings, { directory: data });
  expect((await getAgentToken(server, agent_token, "id=git")).access_token).toBe(token);
  const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
  const account = { email: "bob@example.com", username: "bob", password: "of bob, quite long" };
  const { id } = await admin.post<{ id: string }>("/api/v2/users", account);
  const bob = await new Client(server.url).signIn(account.email, account.password);
  await link(bob, provider, "git");
  expect((await bob.get<ExternalAuthList>("/api/v2/external-auth")).links).toHaveLength(1);
  await admin.delete(`/api/v2/users/${id}`);
  const remainingLinks = getContext(server).store.all({
    sql: "select count(*) from external_auth_links where user_id = ?",
    params: [id],
    map: ([count]) => count,
  });
  expect(await remainingLinks).toEqual([0]);
});
