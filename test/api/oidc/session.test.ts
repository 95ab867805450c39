// After the sign-in: the account follows the provider's data, and the session depends on the provider.
import { expect, test } from "bun:test";
import type { Inbox } from "#schema/notifications/notification.ts";
import { forFile } from "#test/support/for-file.ts";
import { ADMIN } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { fetchStatus, newPerson } from "../users/people.ts";
import type { Person } from "./provider.ts";
import { openOidcWorld } from "./world.ts";

const scopes = ["openid", "email", "profile", "offline_access"];
const world = await forFile(
  openOidcWorld([
    { id: "open", display_name: "Acme", sign_up: true, link_accounts: true },
    { id: "kept", sign_up: true, scopes, roles: { audit: ["auditor"] } },
    { id: "ending", sign_up: true, sign_out_at_provider: true },
  ]),
);
const { admin, clock, idp, signIn, getUser } = world;
const HOUR_MS = 3_600_000;

const person = (name: string, overrides: object = {}): Person => ({
  sub: name,
  email: `${name}@example.com`,
  email_verified: true,
  preferred_username: name,
  name: name.toUpperCase(),
  ...overrides,
});

test("[OI-10] address, username and name follow the provider", async () => {
  const { id } = await getUser((await signIn(person("alice"))).client);
  const changed = person("alice", {
    email: "alice.new@example.com",
    preferred_username: "Alice Möller",
    name: "Alice New",
  });
  expect(await getUser((await signIn(changed)).client)).toMatchObject({
    id,
    email: "alice.new@example.com",
    username: "alice-moller",
    name: "Alice New",
  });
  // Another person may use the old address.
  const otherSignIn = await signIn(person("alice2", { email: "alice@example.com" }));
  expect((await getUser(otherSignIn.client)).id).not.toBe(id);
});

test("[OI-10] keeps a name that the user chose until the provider changes it", async () => {
  const { client } = await signIn(person("bea"));
  await client.put("/api/v2/users/me/profile", { username: "bea-here", name: "Bea Here" });
  expect(await getUser((await signIn(person("bea"))).client)).toMatchObject({ username: "bea-here", name: "Bea Here" });
  expect(await getUser((await signIn(person("bea", { preferred_username: "bea-there" }))).client)).toMatchObject({
    username: "bea-there",
    name: "Bea Here",
  });
});

test("[OI-10] does not change a value that another account uses, and notifies the user once", async () => {
  await signIn(person("cyd"));
  await newPerson(admin, "taken");
  const conflicting = person("cyd", { email: "Taken@example.com", preferred_username: "taken" });
  await signIn(conflicting);
  const { client } = await signIn(conflicting);
  expect(await getUser(client)).toMatchObject({ username: "cyd", email: "cyd@example.com" });
  const { notifications } = await client.get<Inbox>("/api/v2/notifications/inbox");
  expect(notifications.map(({ title }) => title).sort()).toEqual([
    "Your email address was not changed",
    "Your username was not changed",
  ]);
});

test("[OI-10] an account with a password keeps its address and names", async () => {
  const { user } = await newPerson(admin, "pia");
  await admin.put(`/api/v2/users/${user.id}/roles`, { roles: ["owner"] });
  await signIn(person("pia"));
  const { client } = await signIn(person("pia", { email: "pia.new@example.com", preferred_username: "pia-new" }));
  expect(await getUser(client)).toMatchObject({ username: "pia", email: "pia@example.com" });
});

/** Uses a session for an hour. */
const useForAnHour = async (token: string | undefined): Promise<void> => {
  clock.advance(HOUR_MS + 60_000);
  await fetchStatus(admin.withToken(token), "GET", "/users/me");
};

test("[OI-13] an active session picks up changes at the provider without a sign-in", async () => {
  const { token } = await signIn(person("dan", { groups: ["audit"] }), "kept");
  expect((await getUser(admin.withToken(token))).roles.map(({ name }) => name)).toEqual(["auditor"]);
  idp.set(person("dan", { name: "Dan D.", groups: [] }));
  await useForAnHour(token);
  await until(async () => {
    clock.advance(60_000);
    const user = await getUser(admin.withToken(token));
    return user.name === "Dan D." && user.roles.length === 0;
  });
});

test("[OI-13] ends a session that the provider has ended, but keeps it while the provider is unreachable", async () => {
  const { token } = await signIn(person("eve"), "kept");
  idp.isBroken = true;
  await useForAnHour(token);
  clock.advance(60_000);
  expect(await fetchStatus(admin.withToken(token), "GET", "/users/me")).toBe(200);
  idp.isBroken = false;
  await idp.revoke("eve");
  await useForAnHour(token);
  await until(async () => {
    clock.advance(60_000);
    return (await fetchStatus(admin.withToken(token), "GET", "/users/me")) === 401;
  });
});

test("[OI-13] a provider that sends no groups at a check takes no roles", async () => {
  const { token } = await signIn(person("rita", { groups: ["audit"] }), "kept");
  idp.set(person("rita", { name: "Rita R." }));
  await useForAnHour(token);
  const client = admin.withToken(token);
  await until(async () => {
    clock.advance(60_000);
    return (await getUser(client)).name === "Rita R.";
  });
  expect((await getUser(client)).roles.map(({ name }) => name)).toEqual(["auditor"]);
});

test("[OI-13] with the last session that the provider confirms, sessions of the command line end, but no tokens", async () => {
  const { token, client } = await signIn(person("yan"), "kept");
  const cli = await client.post<{ key: string }>("/api/v2/users/me/keys");
  const apiToken = await client.post<{ key: string }>("/api/v2/users/me/keys/tokens", { token_name: "kept" });
  await idp.revoke("yan");
  await useForAnHour(token);
  await until(async () => {
    clock.advance(60_000);
    return (await fetchStatus(admin.withToken(cli.key), "GET", "/users/me")) === 401;
  });
  expect(await fetchStatus(admin.withToken(apiToken.key), "GET", "/users/me")).toBe(200);
});

test("[OI-13] the session of a linked account ends as well", async () => {
  await newPerson(admin, "lea");
  const { token } = await signIn(person("lea"), "open");
  await idp.revoke("lea");
  await useForAnHour(token);
  await until(async () => {
    clock.advance(60_000);
    return (await fetchStatus(admin.withToken(token), "GET", "/users/me")) === 401;
  });
});

test("[OI-14] signing out also ends the session at the provider if the setting says so", async () => {
  const { client, browser } = await signIn(person("fil"), "ending");
  const { sign_out_url } = await client.post<{ sign_out_url?: string }>("/api/v2/users/logout");
  const url = new URL(sign_out_url ?? "");
  expect(url.href.startsWith(idp.issuer)).toBe(true);
  expect(url.searchParams.get("post_logout_redirect_uri")).toBe(new URL("/login", world.server.url).href);
  expect(url.searchParams.get("id_token_hint")).toMatch(/^ey/);
  const { response } = await browser.followRedirects(url.href);
  expect(response?.status).toBe(200);
  expect(await fetchStatus(client, "GET", "/users/me")).toBe(401);
  const otherSignIn = await signIn(person("gil"));
  expect(await otherSignIn.client.post<object>("/api/v2/users/logout")).toEqual({ message: "You are signed out." });
});

test("[OI-15] an administrator removes the link of a user who has a new identity at the provider", async () => {
  const { client } = await signIn(person("hal"));
  const { id } = await getUser(client);
  const newIdentity = person("hal", { sub: "hal-2" });
  expect((await signIn(newIdentity)).token).toBeUndefined();
  const { client: helper } = await newPerson(admin, "helper");
  expect(await fetchStatus(helper, "DELETE", "/users/hal/oidc-links")).toBe(404);
  await admin.post("/api/v2/users/me/confirm", { password: ADMIN.password });
  expect(await fetchStatus(admin, "DELETE", "/users/hal/oidc-links")).toBe(204);
  expect(await fetchStatus(client, "GET", "/users/me")).toBe(401);
  expect((await getUser((await signIn(newIdentity)).client)).id).toBe(id);
  expect(await fetchStatus(admin, "DELETE", "/users/hal/oidc-links")).toBe(204);
  expect(await fetchStatus(admin, "DELETE", "/users/hal/oidc-links")).toBe(409);
});
