// The table of who may do what: every role against every action, as pure functions and, for identity, through the API.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import * as access from "#src/api/access.ts";
import type { UserCaller } from "#src/api/caller.ts";
import { Client } from "#src/client.ts";
import { ADMIN, startTestServer, type TestServer } from "#test/support/server.ts";
import { newPerson, statusOf } from "./users/people.ts";

const ORG = "00000000-0000-4000-8000-0000000000aa";
const caller = (roles: string[], organizations: Record<string, string[]> = { [ORG]: [] }): UserCaller => ({
  ...{ kind: "user", user_id: "me", username: "me", roles, organizations },
  ...{ key_id: "k", scope: "all", compat: false },
});

const PEOPLE = {
  owner: caller(["owner"], {}),
  "template-admin": caller(["template-admin"], {}),
  "user-admin": caller(["user-admin"], {}),
  auditor: caller(["auditor"], {}),
  "organization-admin": caller([], { [ORG]: ["organization-admin"] }),
  "organization-template-admin": caller([], { [ORG]: ["organization-template-admin"] }),
  "organization-user-admin": caller([], { [ORG]: ["organization-user-admin"] }),
  "organization-auditor": caller([], { [ORG]: ["organization-auditor"] }),
  member: caller([]),
  banned: caller([], { [ORG]: ["organization-workspace-creation-ban"] }),
  "admin elsewhere": caller([], { other: ["organization-admin"] }),
};
type Name = keyof typeof PEOPLE;

const own = { owner_id: "me", organization_id: ORG, user_acl: {}, group_acl: {} };
const foreign = { ...own, owner_id: "you" };
const shared = (role: "admin" | "use") => ({ ...foreign, user_acl: { me: role } });
const you = { id: "you", roles: [], organizations: { [ORG]: [] } };
const boss = { ...you, roles: ["owner"] };
const yourAuditor = { ...you, organizations: { [ORG]: ["organization-auditor"] } };

const EVERYBODY = Object.keys(PEOPLE) as Name[];
const LEADS: Name[] = ["owner", "template-admin", "organization-admin", "organization-template-admin"];
const INSIDERS: Name[] = EVERYBODY.filter((name) => ORG in PEOPLE[name].organizations);

// biome-ignore format: a table
const TABLE: [string, (who: UserCaller) => boolean, Name[]][] = [
  ["see a foreign workspace", (who) => access.maySeeWorkspace(who, foreign), LEADS],
  ["see a workspace shared for use", (who) => access.maySeeWorkspace(who, shared("use")), [...LEADS, ...INSIDERS]],
  ["update an own workspace", (who) => access.mayUpdateWorkspace(who, own), EVERYBODY],
  ["update a foreign workspace", (who) => access.mayUpdateWorkspace(who, foreign), LEADS],
  ["update a workspace shared for use", (who) => access.mayUpdateWorkspace(who, shared("use")), LEADS],
  ["update a workspace shared as admin", (who) => access.mayUpdateWorkspace(who, shared("admin")), [...LEADS, ...INSIDERS]],
  ["start a foreign workspace", (who) => access.mayStartStop(who, foreign), LEADS],
  ["start a workspace shared as admin", (who) => access.mayStartStop(who, shared("admin")), [...LEADS, ...INSIDERS]],
  ["enter an own workspace", (who) => access.mayUseWorkspace(who, own), EVERYBODY],
  ["enter a foreign workspace", (who) => access.mayUseWorkspace(who, foreign), ["owner"]],
  ["enter a workspace shared for use", (who) => access.mayUseWorkspace(who, shared("use")), ["owner", ...INSIDERS]],
  ["delete an own workspace", (who) => access.mayDeleteWorkspace(who, own), EVERYBODY],
  ["delete a foreign workspace", (who) => access.mayDeleteWorkspace(who, foreign), LEADS],
  ["delete a workspace shared as admin", (who) => access.mayDeleteWorkspace(who, shared("admin")), LEADS],
  ["share an own workspace", (who) => access.mayShareWorkspace(who, own), EVERYBODY],
  ["share a foreign workspace", (who) => access.mayShareWorkspace(who, foreign), ["owner"]],
  ["share a workspace shared as admin", (who) => access.mayShareWorkspace(who, shared("admin")), ["owner"]],
  ["make a favourite of an own workspace", (who) => access.mayFavourite(who, own), EVERYBODY],
  ["make a favourite of a foreign workspace", (who) => access.mayFavourite(who, foreign), []],
  ["create a workspace for oneself", (who) => access.mayCreateWorkspaceFor(who, ORG, "me"),
    ["owner", ...INSIDERS.filter((name) => name !== "banned")]],
  ["create a workspace for another", (who) => access.mayCreateWorkspaceFor(who, ORG, "you"), ["owner", "organization-admin"]],
  ["read templates", (who) => access.mayReadTemplates(who, ORG), ["owner", "template-admin", "auditor", ...INSIDERS]],
  ["manage templates", (who) => access.mayManageTemplates(who, ORG), LEADS],
  ["see the organization", (who) => access.maySeeOrganization(who, ORG),
    ["owner", "template-admin", "user-admin", "auditor", ...INSIDERS]],
  ["change the organization", (who) => access.mayUpdateOrganization(who, ORG), ["owner", "organization-admin"]],
  ["create organizations", access.mayCreateOrganizations, ["owner"]],
  ["read the members", (who) => access.mayReadMembers(who, ORG), ["owner", "template-admin", "user-admin", "auditor",
    "organization-admin", "organization-user-admin", "organization-auditor"]],
  ["add members", (who) => access.mayManageMembers(who, ORG),
    ["owner", "user-admin", "organization-admin", "organization-user-admin"]],
  ["give roles of the organization", (who) => access.mayGiveOrganizationRoles(who, ORG), ["owner", "organization-admin"]],
  ["give site roles", access.mayGiveSiteRoles, ["owner"]],
  ["see a colleague", (who) => access.maySeeUser(who, you), ["owner", "template-admin", "user-admin", "auditor",
    "organization-admin", "organization-user-admin", "organization-auditor"]],
  ["see oneself", (who) => access.maySeeUser(who, { id: "me", organizations: {} }), EVERYBODY],
  ["create users", access.mayCreateUsers, ["owner", "user-admin"]],
  ["suspend or delete a user", (who) => access.mayManageUser(who, you), ["owner", "user-admin"]],
  ["suspend or delete an owner", (who) => access.mayManageUser(who, boss), ["owner"]],
  ["rename oneself", (who) => access.mayEditProfile(who, { ...you, id: "me" }), EVERYBODY],
  ["set a member's password", (who) => access.mayResetPassword(who, you), ["owner", "user-admin"]],
  ["set an owner's password", (who) => access.mayResetPassword(who, boss), ["owner"]],
  ["set the password of one with a role", (who) => access.mayResetPassword(who, yourAuditor), ["owner"]],
  ["handle own keys", (who) => access.mayManageKeysOf(who, "me"), EVERYBODY],
  ["handle another's keys", (who) => access.mayManageKeysOf(who, "you"), ["owner"]],
  ["read the whole audit log", (who) => access.mayReadAudit(who), ["owner", "auditor"]],
  ["read the organization's audit log", (who) => access.mayReadAudit(who, ORG),
    ["owner", "auditor", "organization-admin", "organization-auditor"]],
];

describe("the table", () => {
  test.each(TABLE)("[RO-1] %s", (_action, may, expected) => {
    const allowed = EVERYBODY.filter((name) => may(PEOPLE[name]));
    expect(allowed.sort()).toEqual([...new Set(expected)].sort());
  });
});

describe("through the API", () => {
  let server: TestServer;
  const clients = new Map<string, Client>();
  beforeAll(async () => {
    server = await startTestServer();
    const anybody = new Client(server.url);
    const admin = await anybody.signIn(ADMIN.email, ADMIN.password);
    await newPerson(admin, "target");
    clients.set("owner", admin);
    clients.set("nobody", anybody);
    clients.set("garbage", anybody.as("not-a-token"));
    clients.set("wrong secret", anybody.as(`${(admin.token as string).slice(0, 11)}${"x".repeat(22)}`));
    clients.set("agent token", anybody.as(crypto.randomUUID()));
    for (const role of ["auditor", "user-admin", "template-admin"]) {
      clients.set(role, (await newPerson(admin, role, [role])).client);
    }
    clients.set("member", (await newPerson(admin, "member")).client);
    const revoked = await anybody.signIn(ADMIN.email, ADMIN.password);
    await revoked.post("/api/v2/users/logout");
    clients.set("revoked", revoked);
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
  });

  const STRANGERS = ["nobody", "garbage", "wrong secret", "agent token", "revoked"];
  const COLUMNS = ["owner", "user-admin", "template-admin", "auditor", "member"];
  const NEW = { email: "x@example.com", username: "a--b" };
  const USER = { username: "target" };
  // 400 stands for "may, but this body is refused", so that nothing changes while the table is walked.
  // biome-ignore format: a table
  const ROUTES: [string, string, unknown, number[]][] = [
    ["GET", "/users", undefined, [200, 200, 200, 200, 200]],
    ["POST", "/users", NEW, [400, 400, 400, 400, 400]],
    ["GET", "/users/me", undefined, [200, 200, 200, 200, 200]],
    ["GET", "/users/target", undefined, [200, 200, 200, 200, 404]],
    ["DELETE", "/users/prebuilds", undefined, [403, 403, 403, 403, 404]],
    ["PUT", "/users/target/profile", USER, [200, 200, 403, 403, 404]],
    ["PUT", "/users/target/password", { password: "x" }, [400, 400, 403, 403, 404]],
    ["PUT", "/users/target/status/activate", undefined, [200, 200, 403, 403, 404]],
    ["PUT", "/users/target/status/sleep", undefined, [400, 400, 400, 400, 400]],
    ["GET", "/users/target/roles", undefined, [200, 200, 200, 200, 404]],
    ["PUT", "/users/target/roles", { roles: [] }, [200, 403, 403, 403, 404]],
    ["GET", "/users/target/organizations", undefined, [200, 200, 200, 200, 404]],
    ["POST", "/users/target/keys", undefined, [201, 403, 403, 403, 404]],
    ["GET", "/users/target/keys/tokens", undefined, [200, 403, 403, 403, 404]],
    ["POST", "/users/target/keys/tokens", {}, [201, 403, 403, 403, 404]],
    ["GET", "/users/target/keys/tokens/tokenconfig", undefined, [200, 403, 403, 403, 404]],
    ["GET", "/users/target/keys/tokens/none", undefined, [404, 403, 403, 403, 404]],
    ["GET", "/users/target/keys/0123456789", undefined, [404, 403, 403, 403, 404]],
    ["DELETE", "/users/target/keys/0123456789", undefined, [404, 403, 403, 403, 404]],
    ["PUT", "/users/target/keys/0123456789/expire", undefined, [404, 403, 403, 403, 404]],
    ["GET", "/users/roles", undefined, [200, 200, 200, 200, 200]],
    ["GET", "/organizations", undefined, [200, 200, 200, 200, 200]],
    ["POST", "/organizations", { name: "default" }, [400, 403, 403, 403, 403]],
    ["GET", "/organizations/default", undefined, [200, 200, 200, 200, 200]],
    ["PATCH", "/organizations/default", {}, [200, 403, 403, 403, 403]],
    ["DELETE", "/organizations/default", undefined, [400, 403, 403, 403, 403]],
    ["GET", "/organizations/default/members", undefined, [200, 200, 200, 200, 200]],
    ["GET", "/organizations/default/paginated-members", undefined, [200, 200, 200, 200, 200]],
    ["GET", "/organizations/default/members/roles", undefined, [200, 200, 200, 200, 200]],
    ["GET", "/organizations/default/members/target", undefined, [200, 200, 200, 200, 404]],
    ["POST", "/organizations/default/members/target", undefined, [409, 409, 403, 403, 403]],
    ["DELETE", "/organizations/default/members/me", undefined, [400, 400, 403, 403, 403]],
    ["PUT", "/organizations/default/members/target/roles", { roles: [] }, [200, 403, 403, 403, 404]],
    ["POST", "/users/logout?stay", "not json", [415, 415, 415, 415, 415]],
  ];

  test.each(ROUTES)("[RO-2] %s %s", async (method, path, body, expected) => {
    const statuses: number[] = [];
    for (const name of COLUMNS) statuses.push(await statusOf(clients.get(name) as Client, method, path, body));
    expect(statuses).toEqual(expected);
    for (const name of STRANGERS) {
      expect([name, await statusOf(clients.get(name) as Client, method, path, body)]).toEqual([name, 401]);
    }
  });
});
