// Inviting people: invitations, their links, and signing up with them.
import { expect, test } from "bun:test";
import { sha256 } from "#base/ids.ts";
import { findInvitationByEmail, updateInvitation } from "#db/users/invitations.ts";
import type { Inbox } from "#schema/notifications/notification.ts";
import type { Invitations, Invited, NewInvitation, OpenInvitation } from "#schema/users/invitation.ts";
import type { User } from "#schema/users/user.ts";
import { ApiError, Client } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { getContext } from "#test/support/seed.ts";
import { ADMIN, startTestServer } from "#test/support/server.ts";
import { startSmtpServer } from "#test/support/smtp-server.ts";
import { until } from "#test/support/until.ts";
import { fetchStatus, newPerson, PASSWORD } from "../users/people.ts";

const clock = new ManualClock();
const server = await forFile(startTestServer({ clock }));
const anonymous = new Client(server.url);
const admin = await anonymous.signIn(ADMIN.email, ADMIN.password);

const INVITATIONS_PATH = "/api/v2/invitations";
type Grants = { roles?: string[]; organization_id?: string; organization_roles?: string[]; group_ids?: string[] };

const invite = (inviter: Client, emails: readonly string[], grants: Grants = {}): Promise<Invited> =>
  inviter.post<Invited>(INVITATIONS_PATH, { people: emails.map((email) => ({ email })), ...grants });
const parseToken = (link: string | undefined): string => new URL(link ?? "").hash.slice(1);
/** Invites one address and returns the token of its link. */
const createInvitation = async (email: string, grants: Grants = {}, inviter: Client = admin): Promise<string> =>
  parseToken((await invite(inviter, [email], grants)).invitations[0]?.link);
const openInvitation = (token: string): Promise<OpenInvitation> =>
  anonymous.post<OpenInvitation>(`${INVITATIONS_PATH}/look`, { token });
const accept = async (token: string, username: string): Promise<Client> => {
  const body = { token, username, name: "", password: PASSWORD };
  return anonymous.withToken(
    (await anonymous.post<{ session_token: string }>(`${INVITATIONS_PATH}/accept`, body)).session_token,
  );
};
const awaitRejection = async (work: Promise<unknown>): Promise<string> => {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return error instanceof ApiError ? `${error.status} ${error.message}` : "the request succeeded";
};

const organization = await admin.post<{ id: string }>("/api/v2/organizations", { name: "crew", display_name: "Crew" });
const group = await admin.post<{ id: string }>(`/api/v2/organizations/${organization.id}/groups`, { name: "sailors" });

test("[IV-1] [IV-4] an invited person chooses a name and a password, and gets the invitation's roles and groups", async () => {
  const account = await admin.post<Invited>(INVITATIONS_PATH, {
    people: [{ email: "ada@example.com", name: "Ada Lovelace" }],
    roles: ["auditor"],
    organization_id: organization.id,
    organization_roles: ["organization-template-admin"],
    group_ids: [group.id],
  });
  expect(account).toMatchObject({ skipped: [], by_email: false, without_template: true });
  const { invitation, link } = account.invitations[0] as NewInvitation;
  expect(new URL(link ?? "").pathname + new URL(link ?? "").search).toBe("/invite");
  const token = parseToken(link);
  expect(await openInvitation(token)).toMatchObject({
    email: "ada@example.com",
    name: "Ada Lovelace",
    username: "ada-lovelace",
    organization_name: "Crew",
    roles: ["Auditor", "Organization Template Admin"],
    invited_by: ADMIN.username,
    expires_at: invitation.expires_at,
  });
  const ada = await accept(token, "ada");
  expect(await ada.get<User>("/api/v2/users/me")).toMatchObject({
    username: "ada",
    email: "ada@example.com",
    name: "",
    status: "active",
    login_type: "password",
    organization_ids: [organization.id],
    roles: [{ name: "auditor" }],
  });
  const { organization_roles } = await ada.get<{ organization_roles: object }>("/api/v2/users/me/roles");
  expect(organization_roles).toEqual({ [organization.id]: ["organization-template-admin"] });
  const { members } = await admin.get<{ members: { username: string }[] }>(`/api/v2/groups/${group.id}`);
  expect(members.map(({ username }) => username)).toEqual(["ada"]);
  expect(await anonymous.signIn("ada@example.com", PASSWORD)).toBeDefined();
  expect(await awaitRejection(openInvitation(token))).toStartWith("404 This invitation does not exist.");
  expect((await admin.get<Invitations>(INVITATIONS_PATH)).invitations).toEqual([]);
});

test("[IV-1] skips and names addresses with an account or an invitation; any error rejects all of them", async () => {
  await createInvitation("bob@example.com");
  const { invitations, skipped } = await invite(admin, [
    "BOB@example.com",
    ADMIN.email,
    "eve@example.com",
    "Eve@example.com",
  ]);
  expect(invitations.map(({ invitation }) => invitation.email)).toEqual(["eve@example.com"]);
  expect(skipped.map(({ email }) => email)).toEqual(["BOB@example.com", ADMIN.email]);
  const before = (await admin.get<Invitations>(INVITATIONS_PATH)).invitations.length;
  const people = [{ email: "fine@example.com" }];
  for (const [body, field] of [
    [{ people: [...people, { email: "a\u202e@example.com" }] }, "people[1].email"],
    [{ people: [...people, { email: "ada" }] }, "people[1].email"],
    [{ people: [] }, "people"],
    [{ people: Array.from({ length: 101 }, (_, i) => ({ email: `p${i}@example.com` })) }, "people"],
    [{ people, roles: ["god"] }, "roles"],
    [{ people, organization_roles: ["captain"] }, "roles"],
    [{ people, organization_id: crypto.randomUUID() }, "organization_id"],
    [{ people, group_ids: [group.id] }, "group_ids[0]"],
  ] as const) {
    const response = await admin.fetch("POST", INVITATIONS_PATH, body);
    const { validations } = (await response.json()) as { validations: { field: string }[] };
    const invalidField = validations[0]?.field.replace(/\.(\d+)\b/, "[$1]");
    expect([response.status, invalidField]).toEqual([400, field]);
  }
  expect((await admin.get<Invitations>(INVITATIONS_PATH)).invitations).toHaveLength(before);
});

test("[ID-30] treats all Unicode forms of an address as the same", async () => {
  await invite(admin, ["kim@example.com"]);
  const account = { email: "jörg@example.com", username: "jorg", password: PASSWORD };
  await admin.post("/api/v2/users", account);
  const variants = ["\u212aim@example.com", "ｋim@example.com", "JO\u0308RG@example.com", "jo\u0308rg@example.com"];
  const { invitations, skipped } = await invite(admin, variants);
  expect([invitations, skipped.map(({ email }) => email)]).toEqual([
    [],
    ["Kim@example.com", "kim@example.com", "JöRG@example.com", "jörg@example.com"],
  ]);
  expect((await invite(admin, ["ｚoe@example.com"])).invitations[0]?.invitation.email).toBe("zoe@example.com");
  expect((await admin.fetch("POST", INVITATIONS_PATH, { people: [{ email: "a＠b@example.com" }] })).status).toBe(400);
  const body = { email: "JÖRG@example.com", username: "other", password: PASSWORD };
  expect(await awaitRejection(admin.post("/api/v2/users", body))).toStartWith("409");
  expect(await anonymous.signIn("JO\u0308RG@example.com", PASSWORD)).toBeInstanceOf(Client);
});

test("[IV-2] a link expires after 7 days, and only its hash is stored", async () => {
  const token = await createInvitation("slow@example.com");
  const { store } = getContext(server);
  const rows = await store.all({ sql: "select * from invitations", params: [], map: (row: unknown[]) => row });
  expect(JSON.stringify(rows)).toContain(sha256(token));
  expect(JSON.stringify(rows)).not.toContain(token);
  const { audit_logs } = await admin.get<{ audit_logs: object[] }>("/api/v2/audit?limit=100");
  expect(JSON.stringify(audit_logs)).not.toContain(token);
  const row = await store.get(findInvitationByEmail({ email: "slow@example.com" }));
  expect(row?.expires_at).toBe(clock.now() + 7 * 86_400_000);
  await store.commit([updateInvitation(row?.id ?? "", { expires_at: clock.now() })]);
  expect(await awaitRejection(openInvitation(token))).toStartWith("410 This invitation has expired.");
  expect(await awaitRejection(accept(token, "slow"))).toStartWith("410");
  const { invitations } = await admin.get<Invitations>(INVITATIONS_PATH);
  expect(invitations.find(({ email }) => email === "slow@example.com")?.expired).toBe(true);
  // Inviting the address again replaces the invitation.
  expect((await invite(admin, ["slow@example.com"])).invitations).toHaveLength(1);
});

test("[IV-4] only one of several people who use a link at the same time gets an account", async () => {
  const token = await createInvitation("race@example.com");
  const outcomes = await Promise.allSettled([
    accept(token, "race-1"),
    accept(token, "race-2"),
    accept(token, "race-3"),
  ]);
  expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
});

test("[IV-4] rejects a taken or reserved username and a weak password, and the link still works", async () => {
  const token = await createInvitation("picky@example.com");
  const body = { token, username: "picky", password: PASSWORD };
  for (const [overrides, status] of [
    [{ username: ADMIN.username }, 409],
    [{ username: "me" }, 400],
    [{ username: "not ok" }, 400],
    [{ password: "password" }, 400],
    [{ password: undefined }, 400],
    [{ token: "wrong" }, 404],
  ] as const) {
    expect(await fetchStatus(anonymous, "POST", "/invitations/accept", { ...body, ...overrides })).toBe(status);
  }
  expect((await (await accept(token, "picky")).get<User>("/api/v2/users/me")).username).toBe("picky");
});

test("[IV-3] people who manage members invite to their organization, with at most their own rights", async () => {
  const { client: lead, user } = await newPerson(admin, "lead");
  const member = `/api/v2/organizations/${organization.id}/members/${user.id}`;
  await admin.post(member);
  expect(await fetchStatus(lead, "GET", "/invitations")).toBe(403);
  expect(await awaitRejection(invite(lead, ["new@example.com"], { organization_id: organization.id }))).toStartWith(
    "403",
  );
  await admin.put(`${member}/roles`, { roles: ["organization-user-admin"] });
  expect(await awaitRejection(invite(lead, ["new@example.com"]))).toStartWith("403");
  const inOrganization = { organization_id: organization.id };
  expect(
    await awaitRejection(invite(lead, ["new@example.com"], { ...inOrganization, roles: ["auditor"] })),
  ).toStartWith("403 Forbidden. Only an owner may give site roles.");
  expect(
    await awaitRejection(
      invite(lead, ["new@example.com"], { ...inOrganization, organization_roles: ["organization-admin"] }),
    ),
  ).toStartWith("403 Forbidden. Only an administrator of the organization");
  const token = await createInvitation("new@example.com", { ...inOrganization, group_ids: [group.id] }, lead);
  // The lead does not see invitations to other organizations.
  await invite(admin, ["elsewhere@example.com"]);
  const { invitations } = await lead.get<Invitations>(INVITATIONS_PATH);
  expect(invitations.map(({ email }) => email)).toEqual(["new@example.com"]);
  // Permissions are checked again when the invitation is accepted.
  await admin.put(`${member}/roles`, { roles: [] });
  expect(await awaitRejection(openInvitation(token))).toStartWith(
    "403 The person who invited you no longer has the rights",
  );
  expect(await awaitRejection(accept(token, "newbie"))).toStartWith("403");
  await admin.put(`${member}/roles`, { roles: ["organization-user-admin"] });
  const accepted = await accept(token, "newbie");
  expect((await accepted.get<User>("/api/v2/users/me")).organization_ids).toEqual([organization.id]);
  const { notifications } = await lead.get<Inbox>("/api/v2/notifications/inbox");
  expect(notifications.map(({ title, content }) => [title, content])).toContainEqual([
    "User newbie was created",
    "The account was created by an invitation of lead.",
  ]);
});

test("[IV-6] resending an invitation revokes the old link; the audit log has resending and revoking", async () => {
  const oldToken = await createInvitation("again@example.com");
  const { invitations } = await admin.get<Invitations>(INVITATIONS_PATH);
  const { id } = invitations.find(({ email }) => email === "again@example.com") as { id: string };
  const resent = await admin.post<NewInvitation>(`${INVITATIONS_PATH}/${id}/resend`, {});
  expect(await awaitRejection(openInvitation(oldToken))).toStartWith("404");
  expect((await openInvitation(parseToken(resent.link))).email).toBe("again@example.com");
  expect(await fetchStatus(admin, "POST", `/invitations/${id}/resend`, { by: "email" })).toBe(400);
  const { client: member } = await newPerson(admin, "nosy");
  expect(await fetchStatus(member, "DELETE", `/invitations/${id}`)).toBe(404);
  expect(await fetchStatus(admin, "DELETE", `/invitations/${id}`)).toBe(204);
  expect(await fetchStatus(admin, "DELETE", `/invitations/${id}`)).toBe(404);
  expect(await awaitRejection(openInvitation(parseToken(resent.link)))).toStartWith("404");
  type Entry = { action: string; resource_type: string; resource_target: string; status_code: number };
  const { audit_logs } = await admin.get<{ audit_logs: Entry[] }>("/api/v2/audit?limit=100");
  const entries = audit_logs.filter(
    ({ resource_target, status_code }) => resource_target === "again@example.com" && status_code < 400,
  );
  expect(entries.map(({ action, resource_type }) => `${action} ${resource_type}`)).toEqual([
    "delete invitation",
    "write invitation",
    "create invitation",
  ]);
});

test("[IV-7] does not warn about missing templates once members can use one", async () => {
  await using world = await startTestServer({ env: { SLIPWAY_ALLOW_LOCAL_PROVISIONER_FOR_MEMBERS: "true" } });
  const inviter = await new Client(world.url).signIn(ADMIN.email, ADMIN.password);
  expect(await invite(inviter, ["one@example.com"])).toMatchObject({ without_template: false });
});

test("[IV-2] with an SMTP server, emails the link, and returns it only on request", async () => {
  using smtp = startSmtpServer();
  await using world = await startTestServer({
    env: {
      SLIPWAY_SMTP_HOST: "127.0.0.1",
      SLIPWAY_SMTP_PORT: String(smtp.port),
      SLIPWAY_SMTP_FROM: "a@b.example",
      SLIPWAY_SMTP_TLS: "none",
    },
  });
  const inviter = await new Client(world.url).signIn(ADMIN.email, ADMIN.password);
  const { invitations, by_email } = await invite(inviter, ["mia@example.com", "max@example.com"]);
  expect([by_email, invitations.map(({ link }) => link)]).toEqual([true, [undefined, undefined]]);
  await until(() => smtp.letters.length === 2);
  const letter = smtp.letters.find(({ to }) => to[0]?.includes("mia@example.com"));
  const link = letter?.text.replaceAll("=\n", "").match(/http\S+\/invite#\w{43}/)?.[0];
  expect(
    (await new Client(world.url).post<OpenInvitation>(`${INVITATIONS_PATH}/look`, { token: parseToken(link) })).email,
  ).toBe("mia@example.com");
  const listSent = () =>
    inviter.get<Invitations>(INVITATIONS_PATH).then((list) => list.invitations.filter(({ sent_at }) => sent_at));
  await until(async () => (await listSent()).length === 2);
  smtp.rejections.refuse = 1;
  const id = invitations[0]?.invitation.id;
  expect(await inviter.post<NewInvitation>(`${INVITATIONS_PATH}/${id}/resend`, {})).not.toHaveProperty("link");
  await until(async () => {
    const { invitations } = await inviter.get<Invitations>(INVITATIONS_PATH);
    return invitations.find((invitation) => invitation.id === id)?.send_problem !== "";
  });
  const withLink = await inviter.post<NewInvitation>(`${INVITATIONS_PATH}/${id}/resend`, { by: "link" });
  expect(
    (await new Client(world.url).post<OpenInvitation>(`${INVITATIONS_PATH}/look`, { token: parseToken(withLink.link) }))
      .email,
  ).toBe("mia@example.com");
});

test("[IV-10] scoped tokens can list, invite or revoke, and nothing more", async () => {
  const createScopedClient = async (...scopes: string[]): Promise<Client> => {
    const token_name = `narrow-${scopes.length}-${scopes[0]?.replace(":", "-")}`;
    return admin.withToken(
      (await admin.post<{ key: string }>("/api/v2/users/me/keys/tokens", { token_name, scopes })).key,
    );
  };
  const reader = await createScopedClient("user:read", "organization_member:read");
  const inviter = await createScopedClient("user:create", "organization_member:create");
  const revoker = await createScopedClient("user:delete");
  const people = [{ email: "narrow@example.com" }];
  const account = await inviter.post<Invited>(INVITATIONS_PATH, { people, organization_id: organization.id });
  const id = account.invitations[0]?.invitation.id ?? "";
  expect((await reader.get<Invitations>(INVITATIONS_PATH)).invitations.map((invitation) => invitation.id)).toContain(
    id,
  );
  const bodyWithGroup = {
    people: [{ email: "group@example.com" }],
    organization_id: organization.id,
    group_ids: [group.id],
  };
  const getStatus = async (
    client: Client,
    method: "GET" | "POST" | "DELETE",
    path: string,
    body?: object,
  ): Promise<number> => (await client.fetch(method, path, body)).status;
  expect([
    await getStatus(await createScopedClient("user:create"), "POST", INVITATIONS_PATH, { people }),
    await getStatus(inviter, "POST", INVITATIONS_PATH, bodyWithGroup),
    await getStatus(inviter, "GET", INVITATIONS_PATH),
    await getStatus(reader, "POST", INVITATIONS_PATH, { people }),
    await getStatus(reader, "DELETE", `${INVITATIONS_PATH}/${id}`),
    await getStatus(revoker, "POST", `${INVITATIONS_PATH}/${id}/resend`, { by: "link" }),
    await getStatus(inviter, "POST", `${INVITATIONS_PATH}/${id}/resend`, { by: "link" }),
    await getStatus(revoker, "DELETE", `${INVITATIONS_PATH}/${id}`),
    await getStatus(reader, "GET", `/api/v2/organizations/${organization.id}/administrators`),
    await getStatus(inviter, "GET", `/api/v2/organizations/${organization.id}/administrators`),
  ]).toEqual([403, 403, 403, 403, 403, 403, 201, 204, 200, 403]);
});
