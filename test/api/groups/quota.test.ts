// The daily cost of workspaces, and its limits by groups.
import { expect, test } from "bun:test";
import type { Manifest } from "#schema/templates/manifest.ts";
import type { Group, WorkspaceQuota } from "#schema/users/group.ts";
import { seedUser } from "#test/support/seed.ts";
import { importVersion, makeTemplate } from "#test/support/templates.ts";
import { awaitBuild, createBuild, createWorkspace, ECHO, openWorld, seedTemplate } from "#test/support/workspaces.ts";

const COSTLY: Manifest = { ...ECHO, resources: ECHO.resources.map((resource) => ({ ...resource, daily_cost: 4 })) };

test("[GR-7] builds above the allowance of the owner's groups do not start, not even concurrently", async () => {
  await using world = await openWorld();
  const { template_id, organization_id } = await seedTemplate(world.server, COSTLY);
  const { token, user_id } = await seedUser(world.server, { username: "ada", organization_id });
  const ada = world.admin.withToken(token);
  const cost = 4 * COSTLY.resources.length;
  const getQuota = () => ada.get<WorkspaceQuota>(`/api/v2/organizations/${organization_id}/members/me/workspace-quota`);
  const createAndAwait = async (name: string) =>
    (await awaitBuild(ada, (await createWorkspace(ada, template_id, name)).id)).latest_build;

  expect((await createAndAwait("free")).job.status).toBe("succeeded");
  expect(await getQuota()).toEqual({ credits_consumed: cost, budget: -1 });

  await world.admin.patch(`/api/v2/groups/${organization_id}`, { quota_allowance: cost });
  expect(await getQuota()).toEqual({ credits_consumed: cost, budget: cost });
  const rejected = await createAndAwait("second");
  expect([rejected.job.status, rejected.job.error_code, rejected.daily_cost]).toEqual([
    "failed",
    "INSUFFICIENT_QUOTA",
    0,
  ]);
  expect(rejected.job.error).toContain(`${2 * cost}, and ${cost} are allowed`);

  const group = await world.admin.post<Group>(`/api/v2/organizations/${organization_id}/groups`, {
    name: "builders",
    quota_allowance: 2 * cost,
  });
  await world.admin.patch(`/api/v2/groups/${group.id}`, { add_users: [user_id] });
  const builds = await Promise.all(["c", "d", "e", "f"].map(createAndAwait));
  const errorCodes = builds.map(({ job }) => job.error_code ?? "").sort();
  expect(errorCodes).toEqual(["", "", "INSUFFICIENT_QUOTA", "INSUFFICIENT_QUOTA"]);
  expect(await getQuota()).toEqual({ credits_consumed: 3 * cost, budget: 3 * cost });

  const running = builds.find(({ job }) => job.status === "succeeded");
  await createBuild(ada, running?.workspace_id ?? "", "stop");
  await awaitBuild(ada, running?.workspace_id ?? "");
  expect((await getQuota()).credits_consumed).toBe(2 * cost);
  // A repeated build counts once.
  await createBuild(ada, running?.workspace_id ?? "", "start");
  expect((await awaitBuild(ada, running?.workspace_id ?? "")).latest_build.job.status).toBe("succeeded");
});

test("[GR-7] a start that exceeds the quota does not hide the cost of running resources", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const createManifest = (daily_cost: number): string =>
    JSON.stringify({ ...ECHO, resources: ECHO.resources.map((resource) => ({ ...resource, daily_cost })) });
  const template = await makeTemplate(admin, createManifest(4));
  const { organization_id } = template;
  await admin.patch(`/api/v2/groups/${organization_id}`, { quota_allowance: 4 });
  const expensiveVersion = await importVersion(admin, createManifest(400), { template_id: template.id });
  const { id } = await createWorkspace(admin, template.id);
  expect((await awaitBuild(admin, id)).latest_build.job.status).toBe("succeeded");
  await createBuild(admin, id, "start", { template_version_id: expensiveVersion.id });
  const { latest_build } = await awaitBuild(admin, id);
  expect([latest_build.job.error_code, latest_build.daily_cost]).toEqual(["INSUFFICIENT_QUOTA", 4]);
  const second = await createWorkspace(admin, template.id, "second");
  expect((await awaitBuild(admin, second.id)).latest_build.job.error_code).toBe("INSUFFICIENT_QUOTA");
});
