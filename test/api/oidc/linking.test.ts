// Linking accounts by email address. Reassigned addresses, weaker providers and incomplete sign-ins give no access.
import { expect, test } from "bun:test";
import { findUser, listOwners, updateUser } from "#db/users/users.ts";
import { toIdentity } from "#domain/oidc/identity.ts";
import { applyMapping } from "#domain/oidc/mapping.ts";
import { forFile } from "#test/support/for-file.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { getContext } from "#test/support/seed.ts";
import { startTestServer } from "#test/support/server.ts";
import { enrollApp, SECOND_FACTOR_PATH } from "../factors/people.ts";
import { fetchStatus, newPerson, PASSWORD } from "../users/people.ts";
import { Browser, OidcServer, type Person } from "./provider.ts";
import { COOKIE, openOidcWorld } from "./world.ts";

/** Another provider, where people can choose any identity. */
const weakProvider = await forFile(OidcServer.start());
const world = await forFile(
  openOidcWorld([
    { id: "open", display_name: "Acme", sign_up: true },
    { id: "linking", link_accounts: true },
    { id: "weak", issuer: weakProvider.issuer, link_accounts: true, sign_up: true },
    { id: "mapped", link_accounts: true, roles: { audit: ["auditor"] }, organizations: { ops: { ops: [] } } },
  ]),
);
const { clock, admin, signIn, getUser } = world;
weakProvider.register([new URL("/api/v2/users/oidc/weak/callback", world.server.url).href]);

const person = (name: string, overrides: object = {}): Person => ({
  sub: name,
  email: `${name}@example.com`,
  email_verified: true,
  preferred_username: name,
  ...overrides,
});

type Entry = { readonly action: string; readonly resource_type: string };
const listEntries = async (target: string): Promise<string[]> => {
  const { audit_logs } = await admin.get<{ audit_logs: Entry[] }>(`/api/v2/audit?limit=50&q=resource_target:${target}`);
  return audit_logs.map(({ action, resource_type }) => `${action} ${resource_type}`);
};

test("[OI-5] an address that was reassigned to another person gives no access to the first person's account", async () => {
  const { client } = await signIn(person("vic"));
  const vic = await getUser(client);
  for (const id of ["open", "linking", "weak"]) {
    const newcomer = person("vic", { sub: "other-2", preferred_username: "newhire" });
    weakProvider.person = newcomer;
    const second = await signIn(newcomer, id);
    expect([id, second.token]).toEqual([id, undefined]);
    expect(second.text).toContain("belongs to another sign-in");
  }
  expect((await getUser((await signIn(person("vic"))).client)).id).toBe(vic.id);
  expect((await listEntries("vic")).filter((entry) => entry === "create oidc_link")).toHaveLength(1);
});

test("[OI-5] links only one of two identities that arrive with the same address at the same time", async () => {
  await newPerson(admin, "pat");
  const pendingSignIns: { browser: Browser; callback: URL }[] = [];
  for (const sub of ["pat-a", "pat-b"]) {
    world.idp.person = person("pat", { sub });
    const browser = new Browser();
    const { url } = await browser.followRedirects(world.start("linking"), world.isCallback);
    pendingSignIns.push({ browser, callback: url });
  }
  await Promise.all(
    pendingSignIns.map(async ({ browser, callback }) => {
      const { response } = await browser.followRedirects(callback.href, world.isServerPage);
      await response?.body?.cancel();
    }),
  );
  expect(pendingSignIns.filter(({ browser }) => browser.cookie(world.server.url, COOKIE) !== undefined)).toHaveLength(
    1,
  );
  expect((await listEntries("pat")).filter((entry) => entry === "create oidc_link")).toHaveLength(1);
});

test("[OI-5] linking an identity revokes the account's existing sessions and tokens", async () => {
  const { client, user } = await newPerson(admin, "una");
  const token = await client.post<{ key: string }>("/api/v2/users/me/keys/tokens", { token_name: "kept" });
  using stream = await client.socket("/api/v2/chats/watch");
  const linked = await signIn(person("una"), "linking");
  expect((await getUser(linked.client)).id).toBe(user.id);
  for (const revoked of [client, client.withToken(token.key)])
    expect(await fetchStatus(revoked, "GET", "/users/me")).toBe(401);
  expect((await stream.closed).code).toBe(1008);
  const listNotifications = async () =>
    (await linked.client.get<{ notifications: { title: string; content: string }[] }>("/api/v2/notifications/inbox"))
      .notifications;
  expect(await listNotifications()).toMatchObject([
    { title: "You now sign in with linking", content: expect.stringContaining("replaced the password") },
  ]);
  // Another person can have chosen the password. Later sign-ins revoke nothing.
  await expect(client.withToken(undefined).signIn("una@example.com", PASSWORD)).rejects.toThrow("Incorrect");
  expect((await getUser(linked.client)).login_type).toBe("oidc");
  expect(await listEntries("una")).toContain("write user");
  await signIn(person("una"), "linking");
  expect(await listNotifications()).toHaveLength(1);
  expect(await fetchStatus(linked.client, "GET", "/users/me")).toBe(200);
});

test("[OI-5] an owner keeps the password, for the day on which the provider does not work", async () => {
  const { client, user } = await newPerson(admin, "ova");
  await admin.put(`/api/v2/users/${user.id}/roles`, { roles: ["owner"] });
  const linked = await signIn(person("ova"), "linking");
  expect((await getUser(linked.client)).id).toBe(user.id);
  const passwordClient = await client.withToken(undefined).signIn("ova@example.com", PASSWORD);
  expect((await getUser(passwordClient)).login_type).toBe("password");
});

testInProcess("[OI-7] two owners cannot lose the role at the same moment", async () => {
  const ctx = getContext(world.server);
  const provider = ctx.oidc.get("mapped");
  const users = await Promise.all(
    ["olaf", "olga"].map(async (name) => {
      const { user } = await newPerson(admin, name);
      await admin.put(`/api/v2/users/${user.id}/roles`, { roles: ["owner"] });
      return user.id;
    }),
  );
  const others = (await ctx.store.all(listOwners({}))).filter(({ id }) => !users.includes(id));
  const setRoles = (roles: string[]) =>
    ctx.store.commit(others.map(({ id }) => updateUser(id, { roles, updated_at: clock.now() })));
  await setRoles([]);
  const changes = await Promise.all(
    users.map(async (id) => {
      const user = await ctx.store.get(findUser({ id }));
      if (!user) throw new Error("no user");
      const identity = { ...toIdentity(provider, person(user.username, { groups: [] })), memberships: {} };
      return await applyMapping(ctx, provider, identity, { user });
    }),
  );
  const outcomes = await Promise.allSettled(changes.map((statements) => ctx.store.commit(statements)));
  await setRoles(["owner"]);
  expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
});

test("[OI-5] links an account created for a provider only through a provider that may link accounts", async () => {
  await admin.post("/api/v2/users", { email: "pre@example.com", username: "pre", login_type: "oidc" });
  const rejected = await signIn(person("pre"), "open");
  expect(rejected.token).toBeUndefined();
  expect(rejected.text).toContain("may not link accounts");
  const { client } = await signIn(person("pre"), "linking");
  expect((await getUser(client)).username).toBe("pre");
  // The account had no sessions or tokens to revoke.
  expect(await client.get<object>("/api/v2/notifications/inbox")).toMatchObject({ notifications: [] });
});

test("[OI-9] stores neither the link nor the roles without the second factor", async () => {
  await admin.post("/api/v2/organizations", { name: "ops", display_name: "Ops" });
  const { client, user } = await newPerson(admin, "fay");
  const { recovery_codes } = await enrollApp(clock, client);
  const unfinished = await signIn(person("fay", { groups: ["audit", "ops"] }), "mapped");
  expect([unfinished.token, unfinished.url.pathname]).toEqual([undefined, "/login"]);
  const challenge = new URLSearchParams(unfinished.url.hash.slice(1)).get("challenge");
  expect(await listEntries("fay")).not.toContain("create oidc_link");
  expect((await getUser(client)).roles).toEqual([]);
  expect((await getUser(client)).organization_ids).toHaveLength(1);
  // The sign-in cannot be completed without the code.
  const anonymous = client.withToken(undefined);
  expect((await anonymous.fetch("POST", SECOND_FACTOR_PATH, { challenge, code: "abcd-efgh-ijkl" })).status).toBe(401);
  expect(await listEntries("fay")).not.toContain("create oidc_link");
  const completed = await anonymous.fetch("POST", SECOND_FACTOR_PATH, { challenge, code: recovery_codes[0] });
  expect(completed.status).toBe(201);
  const { session_token } = (await completed.json()) as { session_token: string };
  const signedIn = client.withToken(session_token);
  const updatedUser = await getUser(signedIn);
  expect([updatedUser.id, updatedUser.roles.map(({ name }) => name), updatedUser.organization_ids.length]).toEqual([
    user.id,
    ["auditor"],
    2,
  ]);
  expect(await listEntries("fay")).toContain("create oidc_link");
  const key = session_token.split("-")[0];
  expect(await signedIn.get<object>(`/api/v2/users/me/keys/${key}`)).toMatchObject({ login_type: "oidc" });
});

test("[OI-9] rejects the second step if another identity was linked in the meantime", async () => {
  const { client } = await newPerson(admin, "gus");
  const { recovery_codes } = await enrollApp(clock, client);
  const [first, second] = [
    await signIn(person("gus", { sub: "gus-1" }), "linking"),
    await signIn(person("gus", { sub: "gus-2" }), "linking"),
  ].map(({ url }) => new URLSearchParams(url.hash.slice(1)).get("challenge"));
  const finish = async (challenge: string | null | undefined, code: string | undefined) =>
    (await client.withToken(undefined).fetch("POST", SECOND_FACTOR_PATH, { challenge, code })).status;
  expect(await finish(first, recovery_codes[0])).toBe(201);
  expect(await finish(second, recovery_codes[1])).toBe(403);
});

const INVALID_ADDRESSES = [
  "a\u0000@example.com",
  "a\u202e@example.com",
  "a\u200d@example.com",
  "a,b@example.com",
  "a@b@c.com",
  "a@example.com.",
  "a@example\u3002com",
  '"a"@example.com',
];

test("[ID-27] rejects an address with invisible characters in every request", async () => {
  for (const email of INVALID_ADDRESSES) {
    const body = { email, username: "odd", password: "a-long-enough-secret" };
    const response = await admin.fetch("POST", "/api/v2/users", body);
    const { validations } = (await response.json()) as { validations: { field: string; detail: string }[] };
    expect([email, response.status, validations[0]?.field]).toEqual([email, 400, "email"]);
    expect(validations[0]?.detail).toMatch(/must (be|not contain)/);
    const result = await signIn(person("odd", { email }));
    expect([email, result.token]).toEqual([email, undefined]);
    expect(result.text).toContain("email address");
  }
  expect(await fetchStatus(admin, "GET", "/users/odd")).toBe(404);
});

test("[ID-30] rejects a provider's address with a lookalike character, without access to the similar account", async () => {
  await newPerson(admin, "kim");
  const result = await signIn(person("kim", { email: "\u212aim@example.com" }));
  expect([result.token, result.text.includes("email address that cannot be used here")]).toEqual([undefined, true]);
});

testInProcess("[ID-27] rejects an address with invisible characters in the settings", async () => {
  for (const email of INVALID_ADDRESSES.slice(1)) {
    const env = {
      SLIPWAY_ADMIN_EMAIL: email,
      SLIPWAY_ADMIN_USERNAME: "a",
      SLIPWAY_ADMIN_PASSWORD: "a-long-enough-secret",
    };
    await expect(startTestServer({ env })).rejects.toThrow("SLIPWAY_ADMIN_EMAIL");
  }
});
