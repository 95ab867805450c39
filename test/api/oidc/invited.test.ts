// Accepting an invitation by signing in at a provider.
import { expect, test } from "bun:test";
import type { Invited } from "#schema/users/invitation.ts";
import { forFile } from "#test/support/for-file.ts";
import { Browser, type Person } from "./provider.ts";
import { COOKIE, openOidcWorld } from "./world.ts";

const world = await forFile(openOidcWorld([{ id: "closed", display_name: "Acme" }]));
const { admin, idp, server, signIn, getUser } = world;

const person = (name: string, overrides: object = {}): Person => ({
  sub: name,
  email: `${name}@example.com`,
  email_verified: true,
  preferred_username: name,
  ...overrides,
});
const createInvitation = async (email: string, roles: string[] = []): Promise<string> => {
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
  const { response } = await browser.followRedirects(
    ((await started.json()) as { url: string }).url,
    world.isServerPage,
  );
  const session = browser.cookie(server.url, COOKIE);
  return { session, text: (await response?.text()) ?? "" };
};

test("[IV-5] an invited person signs up through a provider, even if sign-up is off, and gets the invitation's roles", async () => {
  const { session } = await accept(
    await createInvitation("ida@example.com", ["auditor"]),
    person("ida", { email: "Ida@example.com" }),
  );
  const ida = admin.withToken(session);
  expect(await getUser(ida)).toMatchObject({ username: "ida", login_type: "oidc", roles: [{ name: "auditor" }] });
  expect((await getUser((await signIn(person("ida"))).client)).username).toBe("ida");
});

test("[IV-5] a link is valid once, and only for the invited address", async () => {
  const token = await createInvitation("joe@example.com");
  const mallory = await accept(token, person("mallory"));
  expect(mallory.session).toBeUndefined();
  expect(mallory.text).toContain(
    "The invitation is for joe@example.com, and Acme says that you are mallory@example.com.",
  );
  expect((await accept(token, person("joe"))).session).toBeDefined();
  const secondResponse = await admin
    .withToken(undefined)
    .fetch("POST", "/api/v2/invitations/accept/oidc", { token, provider: "closed" });
  expect(secondResponse.status).toBe(404);
});

test("[IV-5] an invited person with a verified address needs no link; others are rejected", async () => {
  expect((await signIn(person("kim"))).text).toContain("Ask an administrator for an invitation.");
  await createInvitation("kim@example.com");
  expect((await signIn(person("kim", { email_verified: false }))).token).toBeUndefined();
  expect((await getUser((await signIn(person("kim"))).client)).username).toBe("kim");
});
