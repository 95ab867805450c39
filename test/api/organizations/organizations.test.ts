// Organizations and their members.
import { describe, expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import { insertRepositoryPrebuild } from "#db/templates/repository-prebuilds.ts";
import { upsertLink } from "#db/users/external-auth.ts";
import type { Budget } from "#schema/ai/budget.ts";
import type { Member } from "#schema/users/member.ts";
import type { Organization } from "#schema/users/organization.ts";
import type { Client } from "#src/client.ts";
import { serverForFile } from "#test/support/for-file.ts";
import { getContext } from "#test/support/seed.ts";
import { openWorld } from "#test/support/workspaces.ts";
import { fetchStatus, newPerson } from "../users/people.ts";

const { admin } = await serverForFile();
const teamAdmin = await newPerson(admin, "lead");
const mia = await newPerson(admin, "mia");
const outsider = await newPerson(admin, "outsider");
const team = await admin.post<Organization>("/api/v2/organizations", { name: "team", display_name: "The team" });
await admin.post("/api/v2/organizations/team/members/lead");
await admin.put("/api/v2/organizations/team/members/lead/roles", { roles: ["organization-admin"] });

const LINK = { sealed_tokens: "sealed", expires_at: null, has_refresh_token: false };

describe("an organization", () => {
  test("[ID-15] is found by ID and by case-insensitive name, and the default one as `default`", async () => {
    for (const text of [team.id, team.id.toUpperCase(), "team", "TEAM"]) {
      expect((await admin.get<Organization>(`/api/v2/organizations/${text}`)).id).toBe(team.id);
    }
    expect(await admin.get<Organization>("/api/v2/organizations/default")).toMatchObject({ is_default: true });
    expect(await fetchStatus(outsider.client, "GET", "/organizations/team")).toBe(404);
    const visible = await outsider.client.get<Organization[]>("/api/v2/organizations");
    expect(visible.map(({ name }) => name)).toEqual(["default"]);
  });

  test("[ID-15] can be created only by owners, with a unique name", async () => {
    const getCreateStatus = (client: Client, body: object) => fetchStatus(client, "POST", "/organizations", body);
    expect(await getCreateStatus(teamAdmin.client, { name: "mine" })).toBe(403);
    expect(await getCreateStatus(admin, { name: "Team" })).toBe(409);
    expect(await getCreateStatus(admin, { name: "Default" })).toBe(400);
    expect(await getCreateStatus(admin, { name: "a b" })).toBe(400);
    expect(await getCreateStatus(admin, { name: "ok", icon: "javascript:alert(1)" })).toBe(400);
    expect(await getCreateStatus(admin, {})).toBe(400);
  });

  test("[ID-15] can be changed by its admin, and deleted by owners if it is empty and not the default", async () => {
    const updated = await teamAdmin.client.patch<Organization>("/api/v2/organizations/team", {
      description: "We build.",
    });
    expect(updated).toMatchObject({ name: "team", display_name: "The team", description: "We build." });
    expect(await fetchStatus(outsider.client, "PATCH", "/organizations/team", { name: "x" })).toBe(404);
    expect(await fetchStatus(mia.client, "PATCH", "/organizations/default", { name: "x" })).toBe(403);
    expect(await fetchStatus(teamAdmin.client, "DELETE", "/organizations/team")).toBe(403);
    expect(await fetchStatus(admin, "DELETE", "/organizations/default")).toBe(400);
    await admin.post("/api/v2/organizations", { name: "short-lived" });
    expect(await fetchStatus(admin, "DELETE", "/organizations/short-lived")).toBe(200);
    expect(await fetchStatus(admin, "GET", "/organizations/short-lived")).toBe(404);
  });

  test("[ID-35] is deleted with its MCP servers and their sign-ins, prebuilds, invitations and budgets", async () => {
    await using world = await openWorld({ clock: systemClock });
    const { store } = getContext(world.server);
    const owner = world.admin;
    const { id: organization_id } = await owner.post<Organization>("/api/v2/organizations", { name: "closing" });
    const { id: server_id } = await owner.post<{ id: string }>("/api/v2/organizations/closing/mcp-servers", {
      slug: "tracker",
      url: "https://tracker.example.com/mcp",
      auth_type: "api_key",
      api_key: "key-of-the-tracker",
    });
    const { id: user_id } = await owner.get<{ id: string }>("/api/v2/users/me");
    const now = Date.now();
    const prebuild = {
      id: uuid(),
      organization_id,
      owner_id: user_id,
      url: "https://git.example.com/app",
      name: "app",
      keep: 1,
      status: "waiting" as const,
      created_at: now,
    };
    await store.commit([
      upsertLink({ user_id, provider_id: `mcp:${server_id}`, ...LINK, created_at: now, updated_at: now }),
      insertRepositoryPrebuild(prebuild),
    ]);
    const people = [{ email: "newcomer@example.com" }];
    await owner.post("/api/v2/invitations", { people, organization_id });
    const { id: group_id } = await owner.post<{ id: string }>("/api/v2/organizations/closing/groups", { name: "crew" });
    const limit = { period: "month", unit: "usd", amount: 1_000 };
    for (const [scope, scope_id] of [
      ["organization", organization_id],
      ["group", group_id],
      ["everyone", undefined],
    ]) {
      const { id } = await owner.put<Budget>("/api/v2/ai/budgets", Object.assign({ scope, scope_id }, limit));
      await owner.post(`/api/v2/ai/budgets/${id}/raise`, { amount: 1 });
    }
    const countRows = () =>
      store.get<number[]>({
        sql: `select (select count(*) from mcp_servers where organization_id = ?1), (select count(*) from repository_prebuilds),
          (select count(*) from invitations), (select count(*) from external_auth_links),
          (select count(*) from budgets), (select count(*) from budget_periods)`,
        params: [organization_id],
        map: (row) => row.map(Number),
      });
    expect(await countRows()).toEqual([1, 1, 1, 1, 3, 3]);
    await owner.delete("/api/v2/organizations/closing");
    expect(await countRows()).toEqual([0, 0, 0, 0, 1, 1]);
    const secondInvitation = await owner.post<{ skipped: unknown[] }>("/api/v2/invitations", { people });
    expect(secondInvitation.skipped).toEqual([]);
  });
});

describe("members", () => {
  const MEMBERS = "/api/v2/organizations/team/members";

  test("[ID-16] with roles can be removed only by people who may revoke the roles", async () => {
    const helper = await newPerson(admin, "helper");
    await teamAdmin.client.post(`${MEMBERS}/helper`);
    await teamAdmin.client.put(`${MEMBERS}/helper/roles`, { roles: ["organization-user-admin"] });
    expect(await fetchStatus(helper.client, "DELETE", "/organizations/team/members/lead")).toBe(403);
    expect(await fetchStatus(teamAdmin.client, "DELETE", "/organizations/team/members/helper")).toBe(204);
  });

  test("[ID-16] are added once, listed by username, assigned roles, and removed", async () => {
    expect(await teamAdmin.client.post<Member>(`${MEMBERS}/mia`)).toMatchObject({ username: "mia", roles: [] });
    expect(await fetchStatus(teamAdmin.client, "POST", "/organizations/team/members/mia")).toBe(409);
    expect(await fetchStatus(teamAdmin.client, "POST", "/organizations/team/members/unknown")).toBe(404);
    const listed = await teamAdmin.client.get<Member[]>(MEMBERS);
    expect(listed.map((member) => member.username)).toEqual(["lead", "mia"]);
    const page = await teamAdmin.client.get<{ members: Member[]; count: number }>(
      "/api/v2/organizations/team/paginated-members?limit=1&offset=1",
    );
    expect([page.members.map((member) => member.username), page.count]).toEqual([["mia"], 2]);
    const updatedMember = await teamAdmin.client.put<Member>(`${MEMBERS}/mia/roles`, {
      roles: ["organization-auditor"],
    });
    expect(updatedMember.roles).toEqual([
      { name: "organization-auditor", display_name: "Organization Auditor", organization_id: team.id },
    ]);
    expect(
      await fetchStatus(teamAdmin.client, "PUT", "/organizations/team/members/mia/roles", { roles: ["owner"] }),
    ).toBe(400);
    expect(await fetchStatus(teamAdmin.client, "DELETE", "/organizations/team/members/mia")).toBe(204);
    expect(await fetchStatus(teamAdmin.client, "DELETE", "/organizations/team/members/mia")).toBe(404);
    expect(await fetchStatus(mia.client, "GET", "/organizations/team")).toBe(404);
  });

  test("[ID-16] can leave an organization unless it is their only one", async () => {
    await teamAdmin.client.post<Member>(`${MEMBERS}/mia`);
    expect(await fetchStatus(outsider.client, "DELETE", "/organizations/team/members/me")).toBe(404);
    expect(await fetchStatus(mia.client, "DELETE", "/organizations/team/members/lead")).toBe(404);
    expect(await fetchStatus(mia.client, "DELETE", "/organizations/team/members/me")).toBe(204);
    expect(await fetchStatus(mia.client, "DELETE", "/organizations/team/members/me")).toBe(404);
    const onlyOrganization = await mia.client.fetch("DELETE", "/api/v2/organizations/default/members/mia");
    expect([onlyOrganization.status, await onlyOrganization.text()]).toEqual([
      403,
      expect.stringContaining("cannot leave your only organization"),
    ]);
    await teamAdmin.client.post<Member>(`${MEMBERS}/mia`);
    const leaveStatuses = ["team", "default"].map((name) =>
      fetchStatus(mia.client, "DELETE", `/organizations/${name}/members/me`),
    );
    expect((await Promise.all(leaveStatuses)).toSorted()).toEqual([204, 403]);
    for (const name of ["team", "default"]) await fetchStatus(admin, "POST", `/organizations/${name}/members/mia`);
    await admin.delete(`${MEMBERS}/mia`);
  });

  test("[ID-16] see only themselves, and cannot assign roles to themselves", async () => {
    const path = "/organizations/default/members";
    expect((await mia.client.get<Member[]>(`/api/v2${path}`)).map((member) => member.username)).toEqual(["mia"]);
    expect(await fetchStatus(mia.client, "GET", `${path}/me`)).toBe(200);
    expect(await fetchStatus(mia.client, "GET", `${path}/outsider`)).toBe(404);
    expect(await fetchStatus(mia.client, "POST", `${path}/lead`)).toBe(403);
    expect(await fetchStatus(mia.client, "PUT", `${path}/me/roles`, { roles: ["organization-admin"] })).toBe(403);
    expect(await fetchStatus(teamAdmin.client, "PUT", "/organizations/team/members/me/roles", { roles: [] })).toBe(400);
  });

  test("[ID-16] the admin of one organization has no rights in another", async () => {
    expect(await fetchStatus(teamAdmin.client, "PUT", "/organizations/default/members/mia/roles", { roles: [] })).toBe(
      404,
    );
    expect(await fetchStatus(teamAdmin.client, "DELETE", "/organizations/default/members/mia")).toBe(404);
    expect(await fetchStatus(teamAdmin.client, "PATCH", "/organizations/default", { name: "x" })).toBe(403);
    expect(await fetchStatus(teamAdmin.client, "GET", "/users/mia")).toBe(404);
  });

  test("[ID-16] see the roles, and whether they may assign them", async () => {
    type Roles = { name: string; assignable: boolean }[];
    const listRoles = (client: Client) => client.get<Roles>("/api/v2/organizations/team/members/roles");
    expect((await listRoles(teamAdmin.client)).every((role) => role.assignable)).toBe(true);
    expect((await listRoles(admin)).map((role) => role.name)).toContain("organization-workspace-creation-ban");
    expect((await mia.client.get<Roles>("/api/v2/users/roles")).some((role) => role.assignable)).toBe(false);
    expect((await admin.get<Roles>("/api/v2/users/roles")).map((role) => role.name)).toContain("owner");
  });
});
