// Prebuilt workspaces and claims, through the public client against a running server; builds use the provisioner `echo`, whose workspaces
// without agents are ready immediately.

import { expect, test } from "bun:test";
import { listPrebuilds } from "#db/workspaces/prebuilds.ts";
import type { HealthReport } from "#schema/deployment/health.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { ApiError, Client } from "#src/client.ts";
import { usesActiveNodes } from "#test/support/cluster/active-nodes.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { testSingleServer } from "#test/support/one-server.ts";
import { getContext, seedUser } from "#test/support/seed.ts";
import { importVersion, makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, createBuild, ECHO, openWorld, type World } from "#test/support/workspaces.ts";
import { newPerson } from "../users/people.ts";

const BARE: Manifest = { provisioner: "echo", resources: [{ name: "main" }] };
const PARAMETERS: Manifest["parameters"] = [
  { name: "size", default: "small" },
  { name: "note", default: "none", mutable: true },
];
/** Returns a manifest with the presets Small, with this number of prebuilds, and Large. */
const manifestWithPrebuilds = (instances: number, more: Partial<Manifest> = {}): Manifest => ({
  ...BARE,
  parameters: PARAMETERS,
  presets: [
    { name: "Small", parameters: { size: "small" }, prebuilds: instances },
    { name: "Large", parameters: { size: "large" } },
  ],
  ...more,
});

type Page = { workspaces: Workspace[]; count: number };
type Preset = { id: string; name: string; desired_prebuild_instances: number | null };
const listOwned = (client: Client, owner: string) =>
  client.get<Page>(`/api/v2/workspaces?q=${encodeURIComponent(`owner:${owner}`)}`);
const isReady = ({ latest_build }: Workspace): boolean => latest_build.status === "running";

/** Waits until there are exactly `count` prebuilt workspaces, all of them ready and matching. */
const awaitReady = ({ admin, server }: World, count: number, matches: (workspace: Workspace) => boolean = () => true) =>
  until(async () => {
    const { workspaces } = await listOwned(admin, "prebuilds");
    if (workspaces.length === count && workspaces.every((workspace) => isReady(workspace) && matches(workspace)))
      return workspaces;
    // If the scheduler is in this process, run it instead of waiting.
    await server.context?.scheduler.tick();
    return undefined;
  });
const createTemplate = async (admin: Client, manifest: Manifest) => {
  const template = await makeTemplate(admin, JSON.stringify(manifest));
  const presets = await admin.get<Preset[]>(`/api/v2/templateversions/${template.active_version_id}/presets`);
  const getPresetId = (name: string) => presets.find((candidate) => candidate.name === name)?.id as string;
  return { template, template_id: template.id, getPresetId, presets };
};
const create = (client: Client, body: object, owner = "me") =>
  client.post<Workspace>(`/api/v2/users/${owner}/workspaces`, body);

test("[PB-1] [PB-7] the server prebuilds as many workspaces as configured; a claim gets one, and another replaces it", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const { template_id, getPresetId, presets } = await createTemplate(admin, manifestWithPrebuilds(2));
  expect(presets.map(({ desired_prebuild_instances }) => desired_prebuild_instances)).toEqual([2, null]);
  const before = await awaitReady(world, 2);
  for (const prebuilt of before) {
    expect(prebuilt).toMatchObject({ owner_name: "prebuilds", owner_id: PREBUILDS_USER_ID, is_prebuild: true });
    expect(prebuilt.name).toMatch(/^prebuild-/);
  }
  const ttl_ms = 3_600_000;
  const body = { name: "mine", template_id, template_version_preset_id: getPresetId("Small"), ttl_ms };
  const schedule = { autostart_schedule: "0 9 * * *", automatic_updates: "always" };
  const note = { rich_parameter_values: [{ name: "note", value: "hello" }] };
  const claimed = await create(admin, { ...body, ...schedule, ...note });
  expect(before.map(({ id }) => id)).toContain(claimed.id);
  expect(claimed).toMatchObject({ name: "mine", owner_name: "admin", is_prebuild: false, ttl_ms, ...schedule });
  expect(claimed.latest_build).toMatchObject({ build_number: 2, transition: "start", reason: "initiator" });
  const running = await awaitBuild(admin, claimed.id);
  expect(running.latest_build).toMatchObject({ status: "running", initiator_name: "admin" });
  expect(running.latest_build.deadline).toBeString();
  const values = await admin.get<object[]>(`/api/v2/workspacebuilds/${running.latest_build.id}/parameters`);
  expect(values).toEqual([
    { name: "note", value: "hello" },
    { name: "size", value: "small" },
  ]);
  const after = await awaitReady(world, 2);
  expect(after.map(({ id }) => id)).not.toContain(claimed.id);
  await createBuild(admin, claimed.id, "stop");
  expect((await awaitBuild(admin, claimed.id)).latest_build.status).toBe("stopped");
});

test("[PB-12] a preset can be selected by ID or by its values; other values create a new workspace", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const { template_id, getPresetId } = await createTemplate(admin, manifestWithPrebuilds(1));
  const [first] = await awaitReady(world, 1);
  const largeSize = [{ name: "size", value: "large" }];
  const large = await create(admin, { name: "large", template_id, rich_parameter_values: largeSize });
  const named = await create(admin, { name: "named", template_id, template_version_preset_id: getPresetId("Large") });
  expect([large, named].map((workspace) => workspace.latest_build.build_number)).toEqual([1, 1]);
  const smallSize = [{ name: "size", value: "small" }];
  const small = await create(admin, { name: "small", template_id, rich_parameter_values: smallSize });
  expect(small.id).toBe(first?.id as string);
  expect(small.latest_build.template_version_preset_id).toBe(getPresetId("Small"));
  await awaitReady(world, 1);
  const takenError = await create(admin, { name: "SMALL", template_id }).catch((error: unknown) => error);
  expect((takenError as ApiError).status).toBe(409);
  expect((takenError as ApiError).body.validations?.[0]?.field).toBe("name");
  await awaitReady(world, 1);
});

test("[PB-13] only template admins see prebuilds, and users cannot change their times", async () => {
  await using world = await openWorld();
  const { admin, server } = world;
  const { template } = await createTemplate(admin, manifestWithPrebuilds(1));
  const [prebuilt] = await awaitReady(world, 1);
  const id = prebuilt?.id as string;
  if (server.context) {
    const { organization_id } = template;
    const bob = admin.withToken((await seedUser(server, { username: "bob", organization_id })).token);
    expect(await bob.get<Page>("/api/v2/workspaces")).toMatchObject({ count: 0 });
    expect((await bob.fetch("GET", `/api/v2/workspaces/${id}`)).status).toBe(404);
    const templateAdmin = await seedUser(server, { username: "tia", organization_id, roles: ["template-admin"] });
    expect(await listOwned(admin.withToken(templateAdmin.token), "prebuilds")).toMatchObject({ count: 1 });
  }
  expect((await admin.fetch("PUT", `/api/v2/workspaces/${id}/ttl`, { ttl_ms: 3_600_000 })).status).toBe(409);
  expect((await admin.fetch("PUT", `/api/v2/workspaces/${id}/autostart`, { schedule: "0 9 * * *" })).status).toBe(409);
  const readTemplate = await admin.get<{ active_user_count: number }>(`/api/v2/templates/${template.id}`);
  expect(readTemplate.active_user_count).toBe(0);
});

test("[PB-2] a new active version replaces all prebuilds; deprecating a template removes them, and it can be deleted", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const { template_id } = await createTemplate(admin, manifestWithPrebuilds(2));
  const oldPrebuilds = await awaitReady(world, 2);
  const version = await importVersion(admin, JSON.stringify(manifestWithPrebuilds(1)), { template_id });
  await admin.patch(`/api/v2/templates/${template_id}/versions`, { id: version.id });
  const newPrebuilds = await awaitReady(
    world,
    1,
    (workspace) => workspace.latest_build.template_version_id === version.id,
  );
  expect(oldPrebuilds.map(({ id }) => id)).not.toContain(newPrebuilds[0]?.id as string);
  await admin.patch(`/api/v2/templates/${template_id}`, { deprecation_message: "Use another." });
  await awaitReady(world, 0);
  await admin.delete(`/api/v2/templates/${template_id}`);
});

test("[PB-7] of twenty concurrent requests, three get different prebuilds and the others new workspaces", async () => {
  await using world = await openWorld({ env: { SLIPWAY_PROVISIONER_SLOTS: "4" } });
  const { admin } = world;
  const { template_id, getPresetId } = await createTemplate(admin, manifestWithPrebuilds(3));
  const prebuiltIds = (await awaitReady(world, 3)).map(({ id }) => id);
  const body = { template_id, template_version_preset_id: getPresetId("Small") };
  const created = await Promise.all(Array.from({ length: 20 }, (_, i) => create(admin, { ...body, name: `w${i}` })));
  expect(new Set(created.map(({ id }) => id)).size).toBe(20);
  expect(created.every(({ owner_name }, i) => owner_name === "admin" && created[i]?.name === `w${i}`)).toBe(true);
  const claimed = created.filter(({ id }) => prebuiltIds.includes(id));
  expect(claimed.length).toBe(3);
  const built = await Promise.all(created.map(({ id }) => awaitBuild(admin, id)));
  expect(built.every(isReady)).toBe(true);
  expect(
    built
      .map(({ latest_build }) => latest_build.build_number)
      .sort()
      .slice(-3),
  ).toEqual([2, 2, 2]);
});

test("[PB-17] the health report and the preset show why a preset has no prebuilds, until that is resolved", async () => {
  await using world = await openWorld();
  const { admin, server } = world;
  const withRegion = [...(PARAMETERS ?? []), { name: "region" }];
  const { template, presets } = await createTemplate(admin, manifestWithPrebuilds(1, { parameters: withRegion }));
  const listFindings = async () => {
    const { findings } = await admin.get<HealthReport>("/api/v2/debug/health?force=true");
    return findings.filter(({ name }) => name === "prebuilds");
  };
  const [found] = await until(async () => {
    await server.context?.scheduler.tick();
    const findings = await listFindings();
    return findings.length > 0 ? findings : undefined;
  });
  expect(found).toMatchObject({ severity: "warning", dismissed: false });
  expect(found?.detail).toStartWith(`preset Small of template ${template.name} cannot be prebuilt: `);
  expect(found?.detail).toContain("region");
  const listPresets = (client: Client) =>
    client.get<(Preset & { prebuild_problem?: string })[]>(
      `/api/v2/templateversions/${template.active_version_id}/presets`,
    );
  expect((await listPresets(admin)).map(({ prebuild_problem = "" }) => prebuild_problem.includes("region"))).toEqual([
    true,
    false,
  ]);
  const member = (await newPerson(admin, "carol")).client;
  expect(await listPresets(member)).toEqual(presets as never);
  const fixedVersion = await importVersion(admin, JSON.stringify(manifestWithPrebuilds(1)), {
    template_id: template.id,
  });
  await admin.patch(`/api/v2/templates/${template.id}/versions`, { id: fixedVersion.id });
  await awaitReady(world, 1);
  await until(async () => ((await listFindings()).length === 0 ? true : undefined));
});

test("[PB-17] a preset of local workspaces shows the reason if the server cannot start local workspaces", async () => {
  await using world = await openWorld({ env: { SLIPWAY_TRUSTED_PROXIES: "127.0.0.1/32" } });
  const { admin, server } = world;
  const { template } = await createTemplate(
    admin,
    manifestWithPrebuilds(1, { provisioner: "local", resources: ECHO.resources }),
  );
  const path = `/api/v2/templateversions/${template.active_version_id}/presets`;
  const problem = await until(async () => {
    await server.context?.scheduler.tick();
    const [getPresetId] = await admin.get<(Preset & { prebuild_problem?: string })[]>(path);
    return getPresetId?.prebuild_problem;
  });
  expect(problem).toContain("Local workspaces");
});

testInProcess(
  "[PB-4] the server retries a failed prebuild with growing delays, and gives up after three failures",
  async () => {
    await using world = await openWorld();
    const { admin, server } = world;
    const { store, prebuilds } = getContext(server);
    const { template_id } = await createTemplate(admin, manifestWithPrebuilds(1, { echo: { error: "no disk" } }));
    const awaitFailed = (count: number): Promise<true> =>
      until(async () => {
        const { workspaces } = await listOwned(admin, "prebuilds");
        return workspaces.filter(({ latest_build }) => latest_build.status === "failed").length === count;
      });
    await awaitFailed(1);
    // Moves the failures back by a day, which is longer than any delay.
    const ageFailures = () =>
      store.commit([{ sql: "update jobs set completed_at = completed_at - 86400000", rows: [[]] }]);
    await prebuilds.reconcile(template_id);
    expect((await store.all(listPrebuilds({ template_id }))).length).toBe(1);
    for (const count of [2, 3]) {
      await ageFailures();
      await prebuilds.reconcile(template_id);
      await awaitFailed(count);
    }
    await ageFailures();
    await prebuilds.reconcile(template_id);
    expect((await store.all(listPrebuilds({ template_id }))).length).toBe(3);
    // Another version starts over and cleans up.
    const version = await importVersion(admin, JSON.stringify(manifestWithPrebuilds(1)), { template_id });
    await admin.patch(`/api/v2/templates/${template_id}/versions`, { id: version.id });
    await awaitReady(world, 1);
  },
);

testInProcess("[PB-3] a prebuild that is not claimed in time is replaced", async () => {
  await using world = await openWorld();
  const { admin, server } = world;
  const { store, prebuilds } = getContext(server);
  const presets = [{ name: "Small", parameters: { size: "small" }, prebuilds: { instances: 1, ttl_ms: 3_600_000 } }];
  const { template_id } = await createTemplate(admin, manifestWithPrebuilds(1, { presets }));
  const [oldPrebuild] = await awaitReady(world, 1);
  await prebuilds.reconcile(template_id);
  expect((await awaitReady(world, 1))[0]?.id).toBe(oldPrebuild?.id as string);
  await store.commit([{ sql: "update jobs set completed_at = completed_at - 3600000", rows: [[]] }]);
  await prebuilds.reconcile(template_id);
  const [newPrebuild] = await awaitReady(world, 1, ({ id }) => id !== oldPrebuild?.id);
  expect(newPrebuild?.is_prebuild).toBe(true);
});

(usesActiveNodes ? testSingleServer("memory") : testInProcess)(
  "[PB-3] builds that people request run before builds of prebuilds, even if requested later",
  async () => {
    await using world = await openWorld({ env: { SLIPWAY_PROVISIONER_SLOTS: "1" } });
    const { admin, server } = world;
    const { clock, jobs, prebuilds } = getContext(server);
    const { template_id, getPresetId } = await createTemplate(admin, manifestWithPrebuilds(1));
    await awaitReady(world, 1);
    const slot = Promise.withResolvers<void>();
    jobs.submit({ id: crypto.randomUUID(), created_at: clock.now(), urgency: "person", run: () => slot.promise });
    const createFromPreset = (name: string, presetName: string) =>
      create(admin, { name, template_id, template_version_preset_id: getPresetId(presetName) });
    const claimed = await createFromPreset("mine", "Small");
    await prebuilds.reconcile(template_id);
    const [prebuild] = (await listOwned(admin, "prebuilds")).workspaces;
    const lateWorkspace = await createFromPreset("late", "Large");
    const positions = [claimed, lateWorkspace, prebuild].map(
      (workspace) => jobs.position(workspace?.latest_build.job.id ?? "").queue_position,
    );
    expect(positions).toEqual([1, 2, 3]);
    slot.resolve();
    await awaitBuild(admin, lateWorkspace.id);
  },
);

test("[PB-7] if the only prebuild was stopped, a claim creates a new workspace", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const { template_id, getPresetId } = await createTemplate(admin, manifestWithPrebuilds(1));
  const [prebuilt] = await awaitReady(world, 1);
  await createBuild(admin, prebuilt?.id as string, "stop");
  const body = { name: "mine", template_id, template_version_preset_id: getPresetId("Small") };
  expect((await create(admin, body)).id).not.toBe(prebuilt?.id as string);
});

testInProcess(
  "[PB-18] while paused, no prebuild is created or removed; resuming takes effect immediately",
  async () => {
    await using world = await openWorld();
    const { admin, server } = world;
    const { scheduler } = getContext(server);
    const { template_id, getPresetId } = await createTemplate(admin, manifestWithPrebuilds(1));
    const [prebuilt] = await awaitReady(world, 1);
    const setPaused = (reconciliation_paused: boolean) =>
      admin.put<object>("/api/v2/prebuilds/settings", { reconciliation_paused });
    expect(await setPaused(true)).toEqual({ reconciliation_paused: true });
    const claimed = await create(admin, {
      name: "mine",
      template_id,
      template_version_preset_id: getPresetId("Small"),
    });
    expect(claimed.id).toBe(prebuilt?.id as string);
    await awaitBuild(admin, claimed.id);
    for (let i = 0; i < 5; i++) await scheduler.tick();
    expect((await listOwned(admin, "prebuilds")).count).toBe(0);
    const report = await admin.get<HealthReport>("/api/v2/debug/health?force=true");
    expect(JSON.stringify(report)).toContain("Prebuilt workspaces are paused.");
    const { client: ada } = await newPerson(admin, "ada");
    const response = await ada.fetch("PUT", "/api/v2/prebuilds/settings", { reconciliation_paused: false });
    expect(response.status).toBe(403);
    await setPaused(false);
    await awaitReady(world, 1);
    const { audit_logs } = await admin.get<{ audit_logs: { diff: object }[] }>(
      "/api/v2/audit?q=resource_type:prebuilds_settings&limit=10",
    );
    expect(audit_logs.map(({ diff }) => diff)).toEqual([
      { reconciliation_paused: { old: true, new: false, secret: false } },
      {},
      { reconciliation_paused: { old: false, new: true, secret: false } },
    ]);
  },
);

test("[PB-7] [GR-7] a user whose quota does not cover a prebuild cannot claim it", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const resources = [{ name: "main", daily_cost: 4 }];
  const { template, template_id, getPresetId } = await createTemplate(admin, manifestWithPrebuilds(1, { resources }));
  await admin.patch(`/api/v2/groups/${template.organization_id}`, { quota_allowance: 4 });
  const body = { template_id, template_version_preset_id: getPresetId("Small") };
  const [first] = await awaitReady(world, 1);
  expect((await create(admin, { ...body, name: "first" })).id).toBe(first?.id as string);
  const [ready] = await awaitReady(world, 1);
  const second = await create(admin, { ...body, name: "second" });
  expect((await awaitBuild(admin, second.id)).latest_build.job.error_code).toBe("INSUFFICIENT_QUOTA");
  expect((await awaitReady(world, 1)).map(({ id }) => id)).toEqual([ready?.id as string]);
});

test("[PB-20] a prebuild cannot be shared before it is claimed", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const { template_id, getPresetId } = await createTemplate(admin, manifestWithPrebuilds(1));
  const [ready] = await awaitReady(world, 1);
  const { user } = await newPerson(admin, "guest");
  const share = () => admin.patch(`/api/v2/workspaces/${ready?.id}/acl`, { user_roles: { [user.id]: "use" } });
  await expect(share()).rejects.toMatchObject({
    status: 409,
    message: expect.stringContaining("A prebuilt workspace can be shared only after it is claimed."),
  });
  const mine = await create(admin, { name: "mine", template_id, template_version_preset_id: getPresetId("Small") });
  expect(mine.id).toBe(ready?.id as string);
  await awaitBuild(admin, mine.id);
  await share();
});
