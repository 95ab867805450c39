// Signing in at a real OpenID Connect provider, from the button to the session, and everyone who must be rejected.
import { expect, spyOn, test } from "bun:test";
import { base64url, decodeJwt, decodeProtectedHeader, generateKeyPair, SignJWT } from "jose";
import type { User } from "#schema/users/user.ts";
import type { Client } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { testInside } from "#test/support/inside.ts";
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
const { idp, server, clock, admin, start, isOurs, isCallback, signIn } = world;
const ann = { sub: "ann-1", email: "ann@example.com", email_verified: true, preferred_username: "ann", name: "Ann A." };

testInside("[OI-1] errors in the setting are named without its secret, and the public part has none", async () => {
  const startWithInvalid = (more: object) =>
    startTestServer({
      env: {
        SLIPWAY_OIDC_PROVIDERS: JSON.stringify([{ id: "a", issuer: "https://x.example", client_id: "c", ...more }]),
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
  const authorize = new URL(browser.visited.find((one) => one.startsWith(idp.issuer)) ?? "");
  expect(Object.fromEntries(authorize.searchParams)).toMatchObject({
    response_type: "code",
    code_challenge_method: "S256",
    client_id: CLIENT.client_id,
    redirect_uri: new URL("/api/v2/users/oidc/open/callback", server.url).href,
  });
  for (const name of ["state", "nonce", "code_challenge"])
    expect(authorize.searchParams.get(name)?.length).toBeGreaterThan(20);
  const me = await client.get<User>("/api/v2/users/me");
  expect(me).toMatchObject({
    username: "ann",
    email: "ann@example.com",
    name: "Ann A.",
    login_type: "oidc",
    status: "active",
  });
  expect(me.organization_ids).toHaveLength(1);
  const key = (client.token ?? "").split("-")[0];
  expect(await client.get<object>(`/api/v2/users/me/keys/${key}`)).toMatchObject({ login_type: "oidc" });
  // The address has changed there: still the same person.
  const secondSignIn = await signIn({ ...ann, email: "ann.new@example.com" });
  expect((await secondSignIn.client.get<User>("/api/v2/users/me")).id).toBe(me.id);
  expect(await fetchStatus(client, "POST", "/users/logout")).toBe(200);
  expect(await fetchStatus(client, "GET", "/users/me")).toBe(401);
  expect(
    await fetchStatus(admin.withToken(undefined), "POST", "/users/login", { email: ann.email, password: "" }),
  ).toBe(401);
});

test("[OI-5] a taken or reserved name is replaced with another", async () => {
  const second = await signIn({ ...ann, sub: "ann-2", email: "ann2@example.com" });
  expect((await second.client.get<User>("/api/v2/users/me")).username).toBe("ann-2");
  const odd = await signIn({ ...ann, sub: "odd", email: "odd@example.com", preferred_username: "../Jörg  Müller!" });
  expect((await odd.client.get<User>("/api/v2/users/me")).username).toBe("jorg-muller");
  const reserved = await signIn({ ...ann, sub: "me", email: "m@example.com", preferred_username: "me" });
  expect((await reserved.client.get<User>("/api/v2/users/me")).username).toBe("me-2");
});

test("[OI-4] an address must be present, verified and from an allowed domain", async () => {
  const bad = { ...ann, sub: "bad", preferred_username: "bad" };
  for (const [claims, words] of [
    [{ ...bad, email: "bad@example.com", email_verified: false }, "not verified"],
    [{ ...bad, email: "bad@example.com", email_verified: undefined }, "does not say whether"],
    [{ ...bad, email: undefined }, "did not send"],
    [{ ...bad, email: "bad@evil.example" }, "domain"],
    [{ ...bad, email: "bad@notexample.com" }, "domain"],
  ] as const) {
    const { token, text } = await signIn(claims as Person);
    expect(token).toBeUndefined();
    expect(text).toContain(words);
  }
  expect(await fetchStatus(admin, "GET", "/users/bad")).toBe(404);
});

test("[OI-5] without sign-up and permission to link, no new user gets in", async () => {
  const outsider = await signIn({ ...ann, sub: "s", email: "stranger@example.com" }, "linking");
  expect(outsider.token).toBeUndefined();
  expect(outsider.text).toContain("no account here yet");
  await newPerson(admin, "pat");
  const pat = { sub: "pat", email: "PAT@example.com", email_verified: true };
  expect((await signIn(pat, "open")).text).toContain("may not link accounts");
  const linked = await signIn(pat, "linking");
  expect(await linked.client.get<User>("/api/v2/users/me")).toMatchObject({ username: "pat", login_type: "password" });
  // Now linked, through any provider of this issuer.
  expect((await signIn(pat, "open")).token).toBeDefined();
  await admin.post("/api/v2/users", { email: "pre@example.com", username: "pre", login_type: "oidc" });
  const prepared = await signIn({ sub: "pre", email: "pre@example.com", email_verified: true }, "linking");
  expect((await prepared.client.get<User>("/api/v2/users/me")).username).toBe("pre");
});

test("[OI-6] suspended and deleted users are refused", async () => {
  const sue = { sub: "sue", email: "sue@example.com", email_verified: true };
  const { client } = await signIn(sue);
  await admin.put("/api/v2/users/sue/status/suspend");
  expect(await fetchStatus(client, "GET", "/users/me")).toBe(401);
  const refused = await signIn(sue);
  expect([refused.token, refused.text.includes("suspended")]).toEqual([undefined, true]);
  await admin.delete("/api/v2/users/sue");
  const recreated = await signIn(sue);
  // The name is held for the deleted user (ID-34).
  expect(await recreated.client.get<User>("/api/v2/users/me")).toMatchObject({ username: "sue-2" });
});

testInside(
  "[OI-6] a person who is suspended during the sign-in gets the answer that suspended people get",
  async () => {
    await newPerson(admin, "ray");
    const ray = { sub: "ray", email: "ray@example.com", email_verified: true };
    await signIn(ray, "linking");
    using _ = spyOn(getContext(server).accounts.factors, "listMethods").mockImplementationOnce(async () => {
      await admin.put("/api/v2/users/ray/status/suspend");
      return [];
    });
    const refused = await signIn(ray, "linking");
    expect([refused.token, refused.text.includes("This account is suspended.")]).toEqual([undefined, true]);
  },
);

test("[OI-6] a linked account with a second factor must also provide it here", async () => {
  const { client } = await newPerson(admin, "fay");
  const { recovery_codes } = await enrollApp(clock, client);
  const fay = { sub: "fay", email: "fay@example.com", email_verified: true };
  const { token, url } = await signIn(fay, "linking", "?redirect=/settings/tokens");
  expect([token, url.pathname, url.search]).toEqual([undefined, "/login", "?redirect=%2Fsettings%2Ftokens"]);
  const challenge = new URLSearchParams(url.hash.slice(1)).get("challenge");
  const done = await client
    .withToken(undefined)
    .fetch("POST", SECOND_FACTOR_PATH, { challenge, code: recovery_codes[0] });
  expect(done.status).toBe(201);
});

test("[OI-3] a callback is valid once, in the browser that started it, for ten minutes, at its own provider", async () => {
  idp.person = ann;
  const browser = new Browser();
  const { url: callback } = await browser.followRedirects(start("open"), isCallback);
  const [thief, other] = [new Browser(), new Browser()];
  await other.followRedirects(start("open"), isCallback);
  const outcome = async (by: Browser, address: string) => {
    const { response } = await by.followRedirects(address, isOurs);
    await response?.body?.cancel();
    return { status: response?.status, token: by.cookie(server.url, COOKIE) };
  };
  const refused = { status: 403, token: undefined };
  // Another browser, with no sign-in or its own: the state does not belong to it.
  expect(await outcome(thief, callback.href)).toEqual(refused);
  expect(await outcome(other, callback.href)).toEqual(refused);
  const elsewhere = new URL(callback.href.replace("/open/", "/mapped/"));
  expect(await outcome(browser, elsewhere.href)).toEqual(refused);
  const forged = new URL(callback);
  forged.searchParams.set("code", "made-up");
  const slowBrowser = new Browser();
  const { url: fresh } = await slowBrowser.followRedirects(start("open"), isCallback);
  clock.advance(10 * 60_000);
  expect(await outcome(slowBrowser, fresh.href)).toEqual(refused);
  const last = new Browser();
  const { url: good } = await last.followRedirects(start("open"), isCallback);
  const stateCookie = last.cookie(server.url, "service_oidc_state_open") ?? "";
  expect(stateCookie).not.toContain("verifier");
  expect((await outcome(last, good.href)).token).toBeDefined();
  // The same code again: the provider has already redeemed it.
  const replay = await fetch(good, {
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
])("[OI-2] an ID token that %s has signed is refused", async (_, forge) => {
  idp.forge = forge;
  const { token, text } = await signIn(ann, "open");
  idp.forge = undefined;
  expect(token).toBeUndefined();
  expect(text).toContain("The response of Acme is not valid.");
});

test("[OI-3] afterwards the browser is redirected only to a path of this server", async () => {
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

test("[OI-8] a declined sign-in and a failing provider are explained", async () => {
  const no = await signIn(undefined);
  expect([no.token, no.text.includes("You denied access.")]).toEqual([undefined, true]);
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
  const { response } = await browser.followRedirects(url.href, isOurs);
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
  const last = await signIn(max, "mapped");
  expect(await listRoles(last.client)).toEqual({ site: [], organizations: [[]] });
  // The same person's other provider does not decide.
  await admin.put("/api/v2/users/max/roles", { roles: ["auditor"] });
  expect((await listRoles((await signIn(max, "open")).client)).site).toEqual(["auditor"]);
  type Entry = { action: string; resource_type: string; diff: object; user: { username: string } | null };
  const { audit_logs } = await admin.get<{ audit_logs: Entry[] }>("/api/v2/audit?limit=50&q=resource_target:max");
  const changes = audit_logs.map(({ action, resource_type }) => `${action} ${resource_type}`);
  for (const one of [
    "create user",
    "create oidc_link",
    "write user",
    "write organization_member",
    "delete organization_member",
  ]) {
    expect(changes).toContain(one);
  }
});
