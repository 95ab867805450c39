// Claims in the forms that real providers use, and how administrators test them.
import { expect, test } from "bun:test";
import { configureLogging, resetLogging } from "#base/log.ts";
import type { Inbox } from "#schema/notifications/notification.ts";
import type { OidcTrial } from "#schema/users/oidc.ts";
import { mergeClaims } from "#src/authentication/oidc.ts";
import { forFile } from "#test/support/for-file.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { fetchStatus, newPerson } from "../users/people.ts";
import { Browser, CLIENT, type Person } from "./provider.ts";
import { COOKIE, openOidcWorld } from "./world.ts";

const roles = { platform: ["template-admin"], audit: ["auditor"] };
const world = await forFile(
  openOidcWorld([
    { id: "strict", display_name: "Acme", sign_up: true },
    { id: "trusting", sign_up: true, link_accounts: true, trust_unverified_email: true },
    { id: "keycloak", sign_up: true, groups_claim: "realm_access.roles", roles },
    { id: "urls", sign_up: true, groups_claim: "https://acme.example/groups", roles },
    {
      id: "mapped",
      sign_up: true,
      roles,
      organizations: { crew: { crew: ["organization-auditor"] }, lost: { gone: [] } },
    },
  ]),
);
const { admin, idp, server, signIn, getUser } = world;
await admin.post("/api/v2/organizations", { name: "crew", display_name: "Crew" });

const person = (name: string, overrides: object = {}): Person => ({
  sub: name,
  email: `${name}@example.com`,
  email_verified: true,
  preferred_username: name,
  ...overrides,
});

const signInAndListRoles = async (id: string, identity: Person): Promise<string[]> =>
  (await getUser((await signIn(identity, id)).client)).roles.map(({ name }) => name);

test("[OI-4] accepts an unverified address only with trust_unverified_email, which the error names", async () => {
  const unverified = person("entra", { email_verified: undefined });
  const rejected = await signIn(unverified, "strict");
  expect(rejected.token).toBeUndefined();
  expect(rejected.text).toContain("does not say whether your email address is verified");
  expect(rejected.text).toContain("trust_unverified_email");
  expect((await signIn(person("auth0", { email_verified: false }), "strict")).text).toContain("trust_unverified_email");
  expect((await getUser((await signIn(unverified, "trusting")).client)).username).toBe("entra");
});

test("[OI-5] an unverified address links no account, even if it is trusted", async () => {
  await newPerson(admin, "boss", ["owner"]);
  const rejected = await signIn(person("boss", { sub: "intruder", email_verified: undefined }), "trusting");
  expect(rejected.token).toBeUndefined();
  expect(rejected.text).toContain("linked only when");
  expect((await signIn(person("boss", { sub: "boss" }), "trusting")).token).toBeDefined();
});

test("[OI-7] reads groups from nested claims, from names with dots, and beyond the first thousand", async () => {
  expect(await signInAndListRoles("keycloak", person("kay", { realm_access: { roles: ["platform"] } }))).toEqual([
    "template-admin",
  ]);
  expect(await signInAndListRoles("urls", person("uma", { "https://acme.example/groups": ["audit"] }))).toEqual([
    "auditor",
  ]);
  const groups = [...Array.from({ length: 3_000 }, (_, i) => `group-${i}`), "audit"];
  expect(await signInAndListRoles("mapped", person("max", { groups: groups }))).toEqual(["auditor"]);
});

testInProcess("[OI-11] the log explains groups without effect, once an hour", async () => {
  const lines: string[] = [];
  configureLogging({ level: "warn", format: "text", write: (line) => lines.push(line) });
  /** Returns what is logged when someone with these groups signs in. */
  const signInAndReadLog = async (claims: object): Promise<string> => {
    lines.length = 0;
    await signIn(person("wes", claims), "mapped");
    return lines.join("").replaceAll('\\"', '"');
  };
  try {
    expect(await signInAndReadLog({ groups: ["/platform", "Audit", "staff"] })).toContain(
      'Group names must match the mapping exactly: "/platform" does not match "platform"; "Audit" does not match "audit".',
    );
    expect(await signInAndReadLog({ groups: "platform,audit" })).toContain(
      '"platform,audit" does not match "platform"',
    );
    const mixedTypes = await signInAndReadLog({ groups: ["staff", { name: "platform" }] });
    expect(mixedTypes).toContain("values that are not texts (1)");
    expect(mixedTypes).toContain('None of the groups matches the mapping: "staff".');
    expect(await signInAndReadLog({})).toContain("The claim groups is missing");
    expect(await signInAndReadLog({ _claim_names: { groups: "src1" } })).toContain("too many groups");
    expect(await signInAndReadLog({})).toBe("");
    world.clock.advance(3_600_000);
    expect(await signInAndReadLog({})).toContain("The claim groups is missing");
    expect((await getUser((await signIn(person("wes"))).client)).roles).toEqual([]);
  } finally {
    resetLogging();
  }
});

test("[OI-7] notifies a user of the roles and organizations that they have lost", async () => {
  const leo = person("leo", { groups: ["platform", "crew"] });
  await signIn(leo, "mapped");
  const { client } = await signIn(person("leo", { groups: ["crew", "audit"] }), "mapped");
  const listContents = async () =>
    (await client.get<Inbox>("/api/v2/notifications/inbox")).notifications.map(({ content }) => content);
  expect(await listContents()).toEqual([
    "mapped no longer gives you the role template-admin. If that is a mistake, ask an administrator.",
  ]);
  world.clock.advance(60_000);
  await signIn(person("leo", { groups: ["audit"] }), "mapped");
  expect((await listContents())[0]).toContain("the organization crew");
});

test("[NO-6] notifies owners of a user who signed up through a provider", async () => {
  await signIn(person("neu"));
  const { notifications } = await admin.get<Inbox>("/api/v2/notifications/inbox");
  expect(notifications.find(({ title }) => title === "User neu was created")?.content).toBe(
    "The account was created by a sign-in at Acme.",
  );
});

/** Simulates the trial page: starts, follows the browser to the provider and back, and completes the trial. */
const runTrial = async (id: string, identity: Person | undefined) => {
  idp.person = identity;
  const browser = new Browser();
  const started = await admin.fetch("POST", `/api/v2/users/oidc/${id}/try`);
  const { url } = (await started.json()) as { url: string };
  browser.accept(server.url, started.headers);
  const { url: page } = await browser.followRedirects(url, world.isServerPage);
  const response = await fetch(new URL(`/api/v2/users/oidc/${id}/try/complete`, server.url), {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "Service-Session-Token": admin.token ?? "",
      cookie: browser.cookies(server.url),
    },
    body: JSON.stringify({ query: page.hash.slice(1) }),
  });
  return { browser, page, status: response.status, result: (await response.json()) as OidcTrial };
};

test("[OI-12] a trial shows the claims and their effect, and changes nothing", async () => {
  const { page, browser, result } = await runTrial("mapped", person("tia", { groups: ["platform", "/crew"] }));
  expect([page.pathname, page.search]).toEqual(["/admin/sign-in/mapped", ""]);
  expect(browser.cookie(server.url, COOKIE)).toBeUndefined();
  expect(result).toMatchObject({
    claims: { sub: "tia", email: "tia@example.com" },
    groups: ["platform", "/crew"],
    allowed: true,
    message: "Signing in creates the account tia.",
    roles: ["template-admin"],
    memberships: [
      { organization: "crew", member: false, roles: [], exists: true },
      { organization: "gone", member: false, roles: [], exists: false },
    ],
  });
  expect(result.remarks).toEqual(['Group names must match the mapping exactly: "/crew" does not match "crew".']);
  expect(await fetchStatus(admin, "GET", "/users/tia")).toBe(404);
  const unverified = await runTrial("strict", person("tia", { email_verified: undefined }));
  expect(unverified.result).toMatchObject({
    allowed: false,
    detail: expect.stringContaining("trust_unverified_email"),
  });
  const rejected = await runTrial("strict", undefined);
  expect([rejected.status, rejected.result.message]).toEqual([401, "Acme did not sign you in. You denied access."]);
});

test("[OI-12] only an owner can start a trial, which is valid once and only for that owner", async () => {
  const { browser, page } = await runTrial("strict", person("tia"));
  const complete = async (token: string | undefined) =>
    (
      await fetch(new URL("/api/v2/users/oidc/strict/try/complete", server.url), {
        method: "POST",
        headers: {
          "content-type": "application/json",
          "Service-Session-Token": token ?? "",
          cookie: browser.cookies(server.url),
        },
        body: JSON.stringify({ query: page.hash.slice(1) }),
      })
    ).status;
  expect(await complete(admin.token)).toBe(401);
  const { client } = await newPerson(admin, "second", ["owner"]);
  expect(await complete(client.token)).toBe(403);
  const { client: member } = await newPerson(admin, "plain");
  expect(await fetchStatus(member, "POST", "/users/oidc/strict/try")).toBe(403);
  expect(await fetchStatus(member, "GET", "/users/oidc")).toBe(403);
  const listed = JSON.stringify(await admin.get("/api/v2/users/oidc"));
  expect(listed).toContain(CLIENT.client_id);
  expect(listed).not.toContain(CLIENT.client_secret);
});

test("[OI-4] the mark of a verified address counts only for the address of the source that sends it", () => {
  const userInfo = { sub: "eve", email: "eve@example.com", email_verified: true };
  expect(mergeClaims({ sub: "eve" }, userInfo)).toEqual(userInfo);
  expect(mergeClaims({ sub: "eve", email: "eve@example.com" }, userInfo)).toEqual(userInfo);
  const { email_verified, ...unmarked } = userInfo;
  expect(mergeClaims({ sub: "eve", email_verified }, unmarked).email_verified).toBeUndefined();
  const changed = mergeClaims({ sub: "eve", email: "alice@example.com" }, userInfo);
  expect([changed.email, changed.email_verified]).toEqual(["alice@example.com", undefined]);
});
