// Accepting an invitation at a provider.
import { expect, test } from "bun:test";
import type { Invited } from "#schema/users/invitation.ts";
import { forFile } from "#test/support/for-file.ts";
import { Browser, type Person } from "./provider.ts";
import { COOKIE, openOidcWorld } from "./world.ts";

const world = await forFile(openOidcWorld([{ id: "closed", display_name: "Acme" }]));
const { admin, idp, server, signIn, me } = world;

const person = (name: string, more: object = {}): Person => ({
  sub: name,
  email: `${name}@example.com`,
  email_verified: true,
  preferred_username: name,
  ...more,
});
const tokenFor = async (email: string, roles: string[] = []): Promise<string> => {
  const created = await admin.post<Invited>("/api/v2/invitations", { people: [{ email }], roles });
  return new URL(created.invitations[0]?.link ?? "").hash.slice(1);
};
/** Follows the button of the invitation page. */
const accept = async (token: string, identity: Person) => {
  idp.person = identity;
  const browser = new Browser();
  const started = await admin
    .withToken(undefined)
    .fetch("POST", "/api/v2/invitations/accept/oidc", { token, provider: "closed" });
  browser.accept(server.url, started.headers);
  const { response } = await browser.followRedirects(((await started.json()) as { url: string }).url, world.isOurs);
  const session = browser.cookie(server.url, COOKIE);
  return { session, text: (await response?.text()) ?? "" };
};

test("[IV-5] an invited person signs up through a provider, even if sign-up is off, with what the invitation gives", async () => {
  const { session } = await accept(
    await tokenFor("ida@example.com", ["auditor"]),
    person("ida", { email: "Ida@example.com" }),
  );
  const ida = admin.withToken(session);
  expect(await me(ida)).toMatchObject({ username: "ida", login_type: "oidc", roles: [{ name: "auditor" }] });
  expect((await me((await signIn(person("ida"))).client)).username).toBe("ida");
});

test("[IV-5] the link is not valid for another address, and is valid once", async () => {
  const token = await tokenFor("joe@example.com");
  const other = await accept(token, person("mallory"));
  expect(other.session).toBeUndefined();
  expect(other.text).toContain(
    "The invitation is for joe@example.com, and Acme says that you are mallory@example.com.",
  );
  expect((await accept(token, person("joe"))).session).toBeDefined();
  const secondResponse = await admin
    .withToken(undefined)
    .fetch("POST", "/api/v2/invitations/accept/oidc", { token, provider: "closed" });
  expect(secondResponse.status).toBe(404);
});

test("[IV-5] a verified address that is invited needs no link; other addresses are refused", async () => {
  expect((await signIn(person("kim"))).text).toContain("Ask an administrator for an invitation.");
  await tokenFor("kim@example.com");
  expect((await signIn(person("kim", { email_verified: false }))).token).toBeUndefined();
  expect((await me((await signIn(person("kim"))).client)).username).toBe("kim");
});
