// Archiving unused versions, and counting the users of a template.
import { expect, test } from "bun:test";
import type { TemplateVersion } from "#schema/templates/template-version.ts";
import { awaitStatus } from "#test/support/net/status.ts";
import { seedUser } from "#test/support/seed.ts";
import { ECHO, importVersion, makeTemplate } from "#test/support/templates.ts";
import { awaitBuild, createBuild, createWorkspace, openWorld } from "#test/support/workspaces.ts";

test("[TP-27] archives failed versions, or with `all` every version that is neither active nor in use", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const template = await makeTemplate(admin);
  const { id: template_id, active_version_id: firstId } = template;
  const { id } = await createWorkspace(admin, template_id);
  await awaitBuild(admin, id);
  const broken = await importVersion(admin, "provisioner: nowhere\n", { template_id, name: "broken" });
  const unused = await importVersion(admin, ECHO, { template_id, name: "unused" });
  const active = await importVersion(admin, ECHO, { template_id, name: "active" });
  const path = `/api/v2/templates/${template_id}/versions`;
  await admin.patch(path, { id: active.id });
  const member = admin.withToken((await seedUser(world.server, { organization_id: template.organization_id })).token);
  expect(await awaitStatus(member.post(`${path}/archive`, { all: true }))).toBe(403);
  expect(await admin.post(`${path}/archive`, {})).toEqual({ template_id, archived_ids: [broken.id] });
  expect(await admin.post(`${path}/archive`, { all: true })).toEqual({ template_id, archived_ids: [unused.id] });
  const remainingVersions = await admin.get<TemplateVersion[]>(path);
  expect(remainingVersions.map((version) => version.id)).toEqual([firstId, active.id]);
  const deleteBuild = await createBuild(admin, id, "delete");
  using follower = await admin.socket(`/api/v2/workspacebuilds/${deleteBuild.id}/logs?follow=true`);
  await follower.closed;
  expect(await admin.post(`${path}/archive`, { all: true })).toEqual({ template_id, archived_ids: [firstId] });
});

test("[TP-28] counts the users of a template by day, for people with permission", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const template = await makeTemplate(admin);
  for (const name of ["first", "second"]) {
    const { id } = await createWorkspace(admin, template.id, name);
    const agent_id = (await awaitBuild(admin, id)).latest_build.resources[0]?.agents?.[0]?.id;
    await admin.post(`/api/v2/workspaces/${id}/usage`, { agent_id, app_name: "ssh" });
  }
  const path = `/api/v2/templates/${template.id}/daus`;
  type DailyUsers = { entries: { date: string; amount: number }[]; tz_hour_offset: number };
  const { entries, tz_hour_offset } = await admin.get<DailyUsers>(`${path}?tz_offset=2`);
  expect([entries.length, tz_hour_offset]).toEqual([61, 2]);
  expect(entries.reduce((sum, { amount }) => sum + amount, 0)).toBe(1);
  expect(entries.every(({ date }) => /^\d{4}-\d{2}-\d{2}$/.test(date))).toBe(true);
  for (const invalidQuery of ["", "?tz_offset=5.1", "?tz_offset=15", "?tz_offset=x"]) {
    expect([invalidQuery, await awaitStatus(admin.get(path + invalidQuery))]).toEqual([invalidQuery, 400]);
  }
  const member = admin.withToken((await seedUser(world.server, { organization_id: template.organization_id })).token);
  expect(await awaitStatus(member.get(`${path}?tz_offset=0`))).toBe(403);
});
