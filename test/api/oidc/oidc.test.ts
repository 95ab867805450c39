// Signing in at a real OpenID Connect provider, and sign-ins that the server must reject.
import { expect, spyOn, test } from "bun:test";
import { base64url, decodeJwt, decodeProtectedHeader, generateKeyPair, SignJWT } from "jose";
import type { User } from "#schema/users/user.ts";
import type { Client } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { getContext } from "#test/support/seed.ts";
import { startTestServer } from "#test/support/server.ts";
import { enrollApp, SECOND_FACTOR_PATH } from "../factors/people.ts";
import { fetchStatus, newPerson } from "../users/people.ts";
import { Browser, CLIENT, type Person } from "./provider.ts";
import { COOKIE, openOidcWorld } from "./world.ts";

const GROUPS = {
  groups_claim: "groups",
  roles: { admins: ["owner"], audit: ["auditor"] },
  organizations: { builders: { default: ["organization-template-admin"] }, staff: { default: [] }, crew: { crew: [] } },
};

const world = await forFile(
  openOidcWorld([
    { id: "open", display_name: "Acme", sign_up: true, email_domains: ["example.com"] },
    { id: "linking", link_accounts: true },
    { id: "mapped", sign_up: true, ...GROUPS },
    { id: "gone", issuer: "http://127.0.0.1:1", client_id: "x", client_secret: "y" },
  ]),
);
const { idp, server, clock, admin, start, isServerPage, isCallback, signIn } = world;
const ann = { sub: "ann-1", email: "ann@example.com", email_verified: true, preferred_username: "ann", name: "Ann A." };

testInProcess("[OI-1] errors in the setting, and the public list of providers, do not contain secrets", async () => {
  const startWithInvalid = (overrides: object) =>
    startTestServer({
      env: {
        SLIPWAY_OIDC_PROVIDERS: JSON.stringify([
          { id: "a", issuer: "https://x.example", client_id: "c", ...overrides },
        ]),
      },
    });
  await expect(startWithInvalid({ issuer: "http://idp.example" })).rejects.toThrow("issuer");
  await expect(startWithInvalid({ signup: true })).rejects.toThrow("the unknown key signup");
  await expect(startWithInvalid({ roles: { a: ["god"] } })).rejects.toThrow("roles");
  await expect(startWithInvalid({ scopes: ["email"] })).rejects.toThrow("openid");
  const methods = await admin.withToken(undefined).get<{ oidc: { providers: object[] } }>("/api/v2/users/authmethods");
  expect(methods.oidc).toMatchObject({ enabled: true, signInText: "Sign in with Acme" });
  expect(methods.oidc.providers[0]).toEqual({
    id: "open",
    name: "Acme",
    icon: "",
    url: "/api/v2/users/oidc/open/start",
  });
  expect(JSON.stringify(methods)).not.toContain(CLIENT.client_secret);
});

test("[OI-2] [OI-5] a new user signs up by signing in, and returns as the same user", async () => {
  const { url, client, browser } = await signIn(ann, "open", "?redirect=/settings/tokens");
  expect(url.pathname).toBe("/settings/tokens");
  const authorize = new URL(browser.visited.find((url) => url.startsWith(idp.issuer)) ?? "");
  expect(Object.fromEntries(authorize.searchParams)).toMatchObject({
    response_type: "code",
    code_challenge_method: "S256",
    client_id: CLIENT.client_id,
    redirect_uri: new URL("/api/v2/users/oidc/open/callback", server.url).href,
  });
  for (const name of ["state", "nonce", "code_challenge"])
    expect(authorize.searchParams.get(name)?.length).toBeGreaterThan(20);
  const user = await client.get<User>("/api/v2/users/me");
  expect(user).toMatchObject({
    username: "ann",
    email: "ann@example.com",
    name: "Ann A.",
    login_type: "oidc",
    status: "active",
  });
  expect(user.organization_ids).toHaveLength(1);
  const key = (client.token ?? "").split("-")[0];
  expect(await client.get<object>(`/api/v2/users/me/keys/${key}`)).toMatchObject({ login_type: "oidc" });
  // A new address at the provider does not change the identity.
  const secondSignIn = await signIn({ ...ann, email: "ann.new@example.com" });
  expect((await secondSignIn.client.get<User>("/api/v2/users/me")).id).toBe(user.id);
  expect(await fetchStatus(client, "POST", "/users/logout")).toBe(200);
  expect(await fetchStatus(client, "GET", "/users/me")).toBe(401);
  expect(
    await fetchStatus(admin.withToken(undefined), "POST", "/users/login", { email: ann.email, password: "" }),
  ).toBe(401);
});

test("[OI-5] replaces a taken, invalid or reserved username with another", async () => {
  const second = await signIn({ ...ann, sub: "ann-2", email: "ann2@example.com" });
  expect((await second.client.get<User>("/api/v2/users/me")).username).toBe("ann-2");
  const invalidName = await signIn({
    ...ann,
    sub: "odd",
    email: "odd@example.com",
    preferred_username: "../Jörg  Müller!",
  });
  expect((await invalidName.client.get<User>("/api/v2/users/me")).username).toBe("jorg-muller");
  const reserved = await signIn({ ...ann, sub: "me", email: "m@example.com", preferred_username: "me" });
  expect((await reserved.client.get<User>("/api/v2/users/me")).username).toBe("me-2");
});

test("[OI-4] an address must be present, verified and from an allowed domain", async () => {
  const newUser = { ...ann, sub: "bad", preferred_username: "bad" };
  for (const [claims, reason] of [
    [{ ...newUser, email: "bad@example.com", email_verified: false }, "not verified"],
    [{ ...newUser, email: "bad@example.com", email_verified: undefined }, "does not say whether"],
    [{ ...newUser, email: undefined }, "did not send"],
    [{ ...newUser, email: "bad@evil.example" }, "domain"],
    [{ ...newUser, email: "bad@notexample.com" }, "domain"],
  ] as const) {
    const { token, text } = await signIn(claims as Person);
    expect(token).toBeUndefined();
    expect(text).toContain(reason);
  }
  expect(await fetchStatus(admin, "GET", "/users/bad")).toBe(404);
});

test("[OI-5] a new user can sign in only with sign-up or permission to link", async () => {
  const outsider = await signIn({ ...ann, sub: "s", email: "stranger@example.com" }, "linking");
  expect(outsider.token).toBeUndefined();
  expect(outsider.text).toContain("no account here yet");
  await newPerson(admin, "pat");
  const pat = { sub: "pat", email: "PAT@example.com", email_verified: true };
  expect((await signIn(pat, "open")).text).toContain("may not link accounts");
  const linked = await signIn(pat, "linking");
  expect(await linked.client.get<User>("/api/v2/users/me")).toMatchObject({ username: "pat", login_type: "oidc" });
  // The link is valid for every provider of this issuer.
  expect((await signIn(pat, "open")).token).toBeDefined();
  await admin.post("/api/v2/users", { email: "pre@example.com", username: "pre", login_type: "oidc" });
  const prepared = await signIn({ sub: "pre", email: "pre@example.com", email_verified: true }, "linking");
  expect((await prepared.client.get<User>("/api/v2/users/me")).username).toBe("pre");
});

test("[OI-6] rejects suspended users, and treats deleted ones as new", async () => {
  const sue = { sub: "sue", email: "sue@example.com", email_verified: true };
  const { client } = await signIn(sue);
  await admin.put("/api/v2/users/sue/status/suspend");
  expect(await fetchStatus(client, "GET", "/users/me")).toBe(401);
  const rejected = await signIn(sue);
  expect([rejected.token, rejected.text.includes("suspended")]).toEqual([undefined, true]);
  await admin.delete("/api/v2/users/sue");
  const recreated = await signIn(sue);
  // The name is reserved for the deleted user (ID-34).
  expect(await recreated.client.get<User>("/api/v2/users/me")).toMatchObject({ username: "sue-2" });
});

testInProcess("[OI-6] rejects a person who is suspended during the sign-in, like any suspended person", async () => {
  await newPerson(admin, "ray");
  const ray = { sub: "ray", email: "ray@example.com", email_verified: true };
  using _ = spyOn(getContext(server).accounts.factors, "listMethods").mockImplementationOnce(async () => {
    await admin.put("/api/v2/users/ray/status/suspend");
    return [];
  });
  const rejected = await signIn(ray, "linking");
  expect([rejected.token, rejected.text.includes("This account is suspended.")]).toEqual([undefined, true]);
});

test("[OI-6] a user with a second factor must also provide it after signing in at the provider", async () => {
  const { client } = await newPerson(admin, "fay");
  const { recovery_codes } = await enrollApp(clock, client);
  const fay = { sub: "fay", email: "fay@example.com", email_verified: true };
  const { token, url } = await signIn(fay, "linking", "?redirect=/settings/tokens");
  expect([token, url.pathname, url.search]).toEqual([undefined, "/login", "?redirect=%2Fsettings%2Ftokens"]);
  const challenge = new URLSearchParams(url.hash.slice(1)).get("challenge");
  const completed = await client
    .withToken(undefined)
    .fetch("POST", SECOND_FACTOR_PATH, { challenge, code: recovery_codes[0] });
  expect(completed.status).toBe(201);
});

test("[OI-3] a callback is valid once, in the browser that started it, for ten minutes, at its own provider", async () => {
  idp.person = ann;
  const browser = new Browser();
  const { url: callback } = await browser.followRedirects(start("open"), isCallback);
  const [otherBrowser, signingIn] = [new Browser(), new Browser()];
  await signingIn.followRedirects(start("open"), isCallback);
  const finishSignIn = async (browser: Browser, address: string) => {
    const { response } = await browser.followRedirects(address, isServerPage);
    await response?.body?.cancel();
    return { status: response?.status, token: browser.cookie(server.url, COOKIE) };
  };
  const rejected = { status: 403, token: undefined };
  // The state does not belong to another browser, with or without a sign-in of its own.
  expect(await finishSignIn(otherBrowser, callback.href)).toEqual(rejected);
  expect(await finishSignIn(signingIn, callback.href)).toEqual(rejected);
  const otherCallback = new URL(callback.href.replace("/open/", "/mapped/"));
  expect(await finishSignIn(browser, otherCallback.href)).toEqual(rejected);

  const slowBrowser = new Browser();
  const { url: expiredCallback } = await slowBrowser.followRedirects(start("open"), isCallback);
  clock.advance(10 * 60_000);
  expect(await finishSignIn(slowBrowser, expiredCallback.href)).toEqual(rejected);
  const lastBrowser = new Browser();
  const { url: validCallback } = await lastBrowser.followRedirects(start("open"), isCallback);
  const stateCookie = lastBrowser.cookie(server.url, "service_oidc_state_open") ?? "";
  expect(stateCookie).not.toContain("verifier");
  expect((await finishSignIn(lastBrowser, validCallback.href)).token).toBeDefined();
  // The provider has already redeemed this code.
  const replay = await fetch(validCallback, {
    redirect: "manual",
    headers: { cookie: `service_oidc_state_open=${stateCookie}` },
  });
  expect(replay.status).toBe(401);
  expect(await replay.json()).toMatchObject({ message: "Acme rejected the request (invalid_grant)." });
});

test.each<[string, (token: string) => Promise<string>]>([
  ["no key at all", async (token) => `${base64url.encode('{"alg":"none"}')}.${token.split(".")[1]}.`],
  [
    "someone with the secret of the client",
    (token) =>
      new SignJWT(decodeJwt(token)).setProtectedHeader({ alg: "HS256" }).sign(Buffer.from(CLIENT.client_secret)),
  ],
  [
    "someone with another key",
    async (token) => {
      const { privateKey } = await generateKeyPair("RS256");
      const { kid = "" } = decodeProtectedHeader(token);
      return new SignJWT(decodeJwt(token)).setProtectedHeader({ alg: "RS256", kid }).sign(privateKey);
    },
  ],
])("[OI-2] rejects an ID token that %s has signed", async (_, forge) => {
  idp.forge = forge;
  const { token, text } = await signIn(ann, "open");
  idp.forge = undefined;
  expect(token).toBeUndefined();
  expect(text).toContain("The response of Acme is not valid.");
});

test("[OI-3] redirects the browser only to a path of this server after the sign-in", async () => {
  for (const [requested, path] of [
    ["//evil.example/", "/"],
    ["https://evil.example/", "/"],
    ["/\\evil.example", "/"],
    ["/..//evil.example", "/evil.example"],
    ["/settings/tokens?x=1", "/settings/tokens"],
  ]) {
    const { url } = await signIn(ann, "open", `?redirect=${encodeURIComponent(requested ?? "")}`);
    expect([requested, url.host, url.pathname]).toEqual([requested, server.url.host, path]);
  }
});

test("[OI-8] explains a denied sign-in and a failing provider", async () => {
  const denied = await signIn(undefined);
  expect([denied.token, denied.text.includes("You denied access.")]).toEqual([undefined, true]);
  const unreachable = await fetch(start("gone"), { redirect: "manual" });
  expect([unreachable.status, ((await unreachable.json()) as { message: string }).message]).toEqual([
    503,
    "gone cannot be reached.",
  ]);
  expect((await fetch(start("nowhere"), { redirect: "manual" })).status).toBe(404);
  idp.person = ann;
  const browser = new Browser();
  const { url } = await browser.followRedirects(start("open"), isCallback);
  idp.isBroken = true;
  const { response } = await browser.followRedirects(url.href, isServerPage);
  idp.isBroken = false;
  expect(await response?.text()).toContain("Acme");
  expect(browser.cookie(server.url, COOKIE)).toBeUndefined();
});

test("[OI-7] groups add and remove roles and memberships at each sign-in", async () => {
  await admin.post("/api/v2/organizations", { name: "crew", display_name: "Crew" });
  const max = { sub: "max", email: "max@example.com", email_verified: true, preferred_username: "max" };
  const listRoles = async (client: Client) => ({
    site: (await client.get<User>("/api/v2/users/me")).roles.map(({ name }) => name),
    organizations: Object.values(
      (await client.get<{ organization_roles: Record<string, string[]> }>("/api/v2/users/me/roles")).organization_roles,
    ),
  });
  const first = await signIn({ ...max, groups: ["audit", "builders", "unknown", "constructor"] }, "mapped");
  expect(await listRoles(first.client)).toEqual({
    site: ["auditor"],
    organizations: [["organization-template-admin"]],
  });
  const second = await signIn({ ...max, groups: ["staff", "crew"] }, "mapped");
  expect(await listRoles(second.client)).toEqual({ site: [], organizations: [[], []] });
  expect(await listRoles((await signIn({ ...max, groups: "admins" }, "mapped")).client)).toEqual({
    site: ["owner"],
    organizations: [[]],
  });
  const lastBrowser = await signIn(max, "mapped");
  expect(await listRoles(lastBrowser.client)).toEqual({ site: [], organizations: [[]] });
  // Signing in through a provider without a mapping does not change roles.
  await admin.put("/api/v2/users/max/roles", { roles: ["auditor"] });
  expect((await listRoles((await signIn(max, "open")).client)).site).toEqual(["auditor"]);
  type Entry = { action: string; resource_type: string; diff: object; user: { username: string } | null };
  const { audit_logs } = await admin.get<{ audit_logs: Entry[] }>("/api/v2/audit?limit=50&q=resource_target:max");
  const changes = audit_logs.map(({ action, resource_type }) => `${action} ${resource_type}`);
  for (const change of [
    "create user",
    "create oidc_link",
    "write user",
    "write organization_member",
    "delete organization_member",
  ]) {
    expect(changes).toContain(change);
  }
});
