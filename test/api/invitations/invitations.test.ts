// Inviting people, from the address to the first session, and everything a link must not allow.
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
const anybody = new Client(server.url);
const admin = await anybody.signIn(ADMIN.email, ADMIN.password);

const INVITATIONS_PATH = "/api/v2/invitations";
type Gift = { roles?: string[]; organization_id?: string; organization_roles?: string[]; group_ids?: string[] };

const invite = (by: Client, emails: readonly string[], gift: Gift = {}): Promise<Invited> =>
  by.post<Invited>(INVITATIONS_PATH, { people: emails.map((email) => ({ email })), ...gift });
const tokenIn = (link: string | undefined): string => new URL(link ?? "").hash.slice(1);
/** Invites one address and returns the token of its link. */
const createInvitation = async (email: string, gift: Gift = {}, by: Client = admin): Promise<string> =>
  tokenIn((await invite(by, [email], gift)).invitations[0]?.link);
const openInvitation = (token: string): Promise<OpenInvitation> =>
  anybody.post<OpenInvitation>(`${INVITATIONS_PATH}/look`, { token });
const accept = async (token: string, username: string): Promise<Client> => {
  const body = { token, username, name: "", password: PASSWORD };
  return anybody.withToken(
    (await anybody.post<{ session_token: string }>(`${INVITATIONS_PATH}/accept`, body)).session_token,
  );
};
const awaitRejection = async (work: Promise<unknown>): Promise<string> => {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return error instanceof ApiError ? `${error.status} ${error.message}` : "it was not refused";
};

const organization = await admin.post<{ id: string }>("/api/v2/organizations", { name: "crew", display_name: "Crew" });
const group = await admin.post<{ id: string }>(`/api/v2/organizations/${organization.id}/groups`, { name: "sailors" });

test("[IV-1] [IV-4] an invited person chooses a name and a password, and has what the invitation gives", async () => {
  const created = await admin.post<Invited>(INVITATIONS_PATH, {
    people: [{ email: "ada@example.com", name: "Ada Lovelace" }],
    roles: ["auditor"],
    organization_id: organization.id,
    organization_roles: ["organization-template-admin"],
    group_ids: [group.id],
  });
  expect(created).toMatchObject({ skipped: [], by_email: false, without_template: true });
  const { invitation, link } = created.invitations[0] as NewInvitation;
  expect(new URL(link ?? "").pathname + new URL(link ?? "").search).toBe("/invite");
  const token = tokenIn(link);
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
  expect(await anybody.signIn("ada@example.com", PASSWORD)).toBeDefined();
  expect(await awaitRejection(openInvitation(token))).toStartWith("404 This invitation does not exist.");
  expect((await admin.get<Invitations>(INVITATIONS_PATH)).invitations).toEqual([]);
});

test("[IV-1] addresses that have an account or an invitation are left out and named; an error refuses all", async () => {
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
    const at = validations[0]?.field.replace(/\.(\d+)\b/, "[$1]");
    expect([response.status, at]).toEqual([400, field]);
  }
  expect((await admin.get<Invitations>(INVITATIONS_PATH)).invitations).toHaveLength(before);
});

test("[ID-30] an address is the same in any Unicode form", async () => {
  await invite(admin, ["kim@example.com"]);
  const created = { email: "jörg@example.com", username: "jorg", password: PASSWORD };
  await admin.post("/api/v2/users", created);
  const written = ["\u212aim@example.com", "ｋim@example.com", "JO\u0308RG@example.com", "jo\u0308rg@example.com"];
  const { invitations, skipped } = await invite(admin, written);
  expect([invitations, skipped.map(({ email }) => email)]).toEqual([
    [],
    ["Kim@example.com", "kim@example.com", "JöRG@example.com", "jörg@example.com"],
  ]);
  expect((await invite(admin, ["ｚoe@example.com"])).invitations[0]?.invitation.email).toBe("zoe@example.com");
  expect((await admin.fetch("POST", INVITATIONS_PATH, { people: [{ email: "a＠b@example.com" }] })).status).toBe(400);
  const body = { email: "JÖRG@example.com", username: "other", password: PASSWORD };
  expect(await awaitRejection(admin.post("/api/v2/users", body))).toStartWith("409");
  expect(await anybody.signIn("JO\u0308RG@example.com", PASSWORD)).toBeInstanceOf(Client);
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

test("[IV-4] if two people use a link at the same time, one gets an account", async () => {
  const token = await createInvitation("race@example.com");
  const outcomes = await Promise.allSettled([
    accept(token, "race-1"),
    accept(token, "race-2"),
    accept(token, "race-3"),
  ]);
  expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
});

test("[IV-4] a taken or reserved username, a weak password and two methods together are refused, and the link still works", async () => {
  const token = await createInvitation("picky@example.com");
  const body = { token, username: "picky", password: PASSWORD };
  for (const [more, status] of [
    [{ username: ADMIN.username }, 409],
    [{ username: "me" }, 400],
    [{ username: "not ok" }, 400],
    [{ password: "password" }, 400],
    [{ password: undefined }, 400],
    [{ token: "wrong" }, 404],
  ] as const) {
    expect(await fetchStatus(anybody, "POST", "/invitations/accept", { ...body, ...more })).toBe(status);
  }
  expect((await (await accept(token, "picky")).get<User>("/api/v2/users/me")).username).toBe("picky");
});

test("[IV-3] people who manage an organization's members invite to it, and give at most what they have", async () => {
  const by = admin;
  const { client: lead, user } = await newPerson(by, "lead");
  const member = `/api/v2/organizations/${organization.id}/members/${user.id}`;
  await by.post(member);
  expect(await fetchStatus(lead, "GET", "/invitations")).toBe(403);
  expect(await awaitRejection(invite(lead, ["new@example.com"], { organization_id: organization.id }))).toStartWith(
    "403",
  );
  await by.put(`${member}/roles`, { roles: ["organization-user-admin"] });
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
  // Invitations by others elsewhere are not visible.
  await invite(by, ["elsewhere@example.com"]);
  const { invitations } = await lead.get<Invitations>(INVITATIONS_PATH);
  expect(invitations.map(({ email }) => email)).toEqual(["new@example.com"]);
  // Permissions are checked again when the invitation is accepted.
  await by.put(`${member}/roles`, { roles: [] });
  expect(await awaitRejection(openInvitation(token))).toStartWith(
    "403 The person who invited you no longer has the rights",
  );
  expect(await awaitRejection(accept(token, "newbie"))).toStartWith("403");
  await by.put(`${member}/roles`, { roles: ["organization-user-admin"] });
  const accepted = await accept(token, "newbie");
  expect((await accepted.get<User>("/api/v2/users/me")).organization_ids).toEqual([organization.id]);
  const { notifications } = await lead.get<Inbox>("/api/v2/notifications/inbox");
  expect(notifications.map(({ title, content }) => [title, content])).toContainEqual([
    "User newbie was created",
    "The account was created by an invitation of lead.",
  ]);
});

test("[IV-6] resending an invitation revokes the old link, and it can be revoked; both are in the audit log", async () => {
  const by = admin;
  const first = await createInvitation("again@example.com", {}, by);
  const { invitations } = await by.get<Invitations>(INVITATIONS_PATH);
  const { id } = invitations.find(({ email }) => email === "again@example.com") as { id: string };
  const resent = await by.post<NewInvitation>(`${INVITATIONS_PATH}/${id}/resend`, {});
  expect(await awaitRejection(openInvitation(first))).toStartWith("404");
  expect((await openInvitation(tokenIn(resent.link))).email).toBe("again@example.com");
  expect(await fetchStatus(by, "POST", `/invitations/${id}/resend`, { by: "email" })).toBe(400);
  const { client: member } = await newPerson(by, "nosy");
  expect(await fetchStatus(member, "DELETE", `/invitations/${id}`)).toBe(404);
  expect(await fetchStatus(by, "DELETE", `/invitations/${id}`)).toBe(204);
  expect(await fetchStatus(by, "DELETE", `/invitations/${id}`)).toBe(404);
  expect(await awaitRejection(openInvitation(tokenIn(resent.link)))).toStartWith("404");
  type Entry = { action: string; resource_type: string; resource_target: string; status_code: number };
  const { audit_logs } = await by.get<{ audit_logs: Entry[] }>("/api/v2/audit?limit=100");
  const ours = audit_logs.filter(
    ({ resource_target, status_code }) => resource_target === "again@example.com" && status_code < 400,
  );
  expect(ours.map(({ action, resource_type }) => `${action} ${resource_type}`)).toEqual([
    "delete invitation",
    "write invitation",
    "create invitation",
  ]);
});

test("[IV-7] the warning that members have no template disappears once one is available to them", async () => {
  await using world = await startTestServer({ env: { SLIPWAY_ALLOW_LOCAL_PROVISIONER_FOR_MEMBERS: "true" } });
  const by = await new Client(world.url).signIn(ADMIN.email, ADMIN.password);
  expect(await invite(by, ["one@example.com"])).toMatchObject({ without_template: false });
});

test("[IV-2] with an SMTP server the link is emailed and is in no response; a copy is created only on request", async () => {
  using smtp = startSmtpServer();
  await using world = await startTestServer({
    env: {
      SLIPWAY_SMTP_HOST: "127.0.0.1",
      SLIPWAY_SMTP_PORT: String(smtp.port),
      SLIPWAY_SMTP_FROM: "a@b.example",
      SLIPWAY_SMTP_TLS: "none",
    },
  });
  const by = await new Client(world.url).signIn(ADMIN.email, ADMIN.password);
  const { invitations, by_email } = await invite(by, ["mia@example.com", "max@example.com"]);
  expect([by_email, invitations.map(({ link }) => link)]).toEqual([true, [undefined, undefined]]);
  await until(() => smtp.letters.length === 2);
  const letter = smtp.letters.find(({ to }) => to[0]?.includes("mia@example.com"));
  const link = letter?.text.replaceAll("=\n", "").match(/http\S+\/invite#\w{43}/)?.[0];
  expect(
    (await new Client(world.url).post<OpenInvitation>(`${INVITATIONS_PATH}/look`, { token: tokenIn(link) })).email,
  ).toBe("mia@example.com");
  const listSent = () =>
    by.get<Invitations>(INVITATIONS_PATH).then((list) => list.invitations.filter(({ sent_at }) => sent_at));
  await until(async () => (await listSent()).length === 2);
  smtp.wishes.refuse = 1;
  const id = invitations[0]?.invitation.id;
  expect(await by.post<NewInvitation>(`${INVITATIONS_PATH}/${id}/resend`, {})).not.toHaveProperty("link");
  await until(async () => {
    const { invitations } = await by.get<Invitations>(INVITATIONS_PATH);
    return invitations.find((one) => one.id === id)?.send_problem !== "";
  });
  const copied = await by.post<NewInvitation>(`${INVITATIONS_PATH}/${id}/resend`, { by: "link" });
  expect(
    (await new Client(world.url).post<OpenInvitation>(`${INVITATIONS_PATH}/look`, { token: tokenIn(copied.link) }))
      .email,
  ).toBe("mia@example.com");
});

test("[IV-10] narrowly scoped tokens list, invite and revoke, and do nothing beyond that", async () => {
  const withScopes = async (...scopes: string[]): Promise<Client> => {
    const token_name = `narrow-${scopes.length}-${scopes[0]?.replace(":", "-")}`;
    return admin.withToken(
      (await admin.post<{ key: string }>("/api/v2/users/me/keys/tokens", { token_name, scopes })).key,
    );
  };
  const reads = await withScopes("user:read", "organization_member:read");
  const invites = await withScopes("user:create", "organization_member:create");
  const revokes = await withScopes("user:delete");
  const people = [{ email: "narrow@example.com" }];
  const created = await invites.post<Invited>(INVITATIONS_PATH, { people, organization_id: organization.id });
  const id = created.invitations[0]?.invitation.id ?? "";
  expect((await reads.get<Invitations>(INVITATIONS_PATH)).invitations.map((one) => one.id)).toContain(id);
  const groups = { people: [{ email: "group@example.com" }], organization_id: organization.id, group_ids: [group.id] };
  const status = async (by: Client, method: "GET" | "POST" | "DELETE", path: string, body?: object): Promise<number> =>
    (await by.fetch(method, path, body)).status;
  expect([
    await status(await withScopes("user:create"), "POST", INVITATIONS_PATH, { people }),
    await status(invites, "POST", INVITATIONS_PATH, groups),
    await status(invites, "GET", INVITATIONS_PATH),
    await status(reads, "POST", INVITATIONS_PATH, { people }),
    await status(reads, "DELETE", `${INVITATIONS_PATH}/${id}`),
    await status(revokes, "POST", `${INVITATIONS_PATH}/${id}/resend`, { by: "link" }),
    await status(invites, "POST", `${INVITATIONS_PATH}/${id}/resend`, { by: "link" }),
    await status(revokes, "DELETE", `${INVITATIONS_PATH}/${id}`),
    await status(reads, "GET", `/api/v2/organizations/${organization.id}/administrators`),
    await status(invites, "GET", `/api/v2/organizations/${organization.id}/administrators`),
  ]).toEqual([403, 403, 403, 403, 403, 403, 201, 204, 200, 403]);
});
