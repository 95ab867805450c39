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
import { testInside } from "#test/support/inside.ts";
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
/** Small workspaces, of which `instances` are prebuilt. */
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

/** Waits until exactly `count` prebuilt workspaces are ready, and nothing else. */
const awaitReady = ({ admin, server }: World, count: number, when: (one: Workspace) => boolean = () => true) =>
  until(async () => {
    const { workspaces } = await listOwned(admin, "prebuilds");
    if (workspaces.length === count && workspaces.every((one) => isReady(one) && when(one))) return workspaces;
    // If the scheduler is in this process, run it instead of waiting.
    await server.context?.scheduler.tick();
    return undefined;
  });
const createTemplate = async (admin: Client, manifest: Manifest) => {
  const template = await makeTemplate(admin, JSON.stringify(manifest));
  const presets = await admin.get<Preset[]>(`/api/v2/templateversions/${template.active_version_id}/presets`);
  const preset = (name: string) => presets.find((one) => one.name === name)?.id as string;
  return { template, template_id: template.id, preset, presets };
};
const create = (client: Client, body: object, owner = "me") =>
  client.post<Workspace>(`/api/v2/users/${owner}/workspaces`, body);

test("[PB-1] [PB-7] as many prebuilds as configured are ready; one is claimed immediately, and another replaces it", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const { template_id, preset, presets } = await createTemplate(admin, manifestWithPrebuilds(2));
  expect(presets.map((one) => one.desired_prebuild_instances)).toEqual([2, null]);
  const before = await awaitReady(world, 2);
  for (const one of before) {
    expect(one).toMatchObject({ owner_name: "prebuilds", owner_id: PREBUILDS_USER_ID, is_prebuild: true });
    expect(one.name).toMatch(/^prebuild-/);
  }
  const ttl_ms = 3_600_000;
  const body = { name: "mine", template_id, template_version_preset_id: preset("Small"), ttl_ms };
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

test("[PB-12] a preset is selected by its values as by its name; other values, another preset or none ready create a new workspace", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const { template_id, preset } = await createTemplate(admin, manifestWithPrebuilds(1));
  const [first] = await awaitReady(world, 1);
  const other = [{ name: "size", value: "large" }];
  const large = await create(admin, { name: "large", template_id, rich_parameter_values: other });
  const named = await create(admin, { name: "named", template_id, template_version_preset_id: preset("Large") });
  expect([large, named].map((one) => one.latest_build.build_number)).toEqual([1, 1]);
  const same = [{ name: "size", value: "small" }];
  const small = await create(admin, { name: "small", template_id, rich_parameter_values: same });
  expect(small.id).toBe(first?.id as string);
  expect(small.latest_build.template_version_preset_id).toBe(preset("Small"));
  await awaitReady(world, 1);
  const takenError = await create(admin, { name: "SMALL", template_id }).catch((error: unknown) => error);
  expect((takenError as ApiError).status).toBe(409);
  expect((takenError as ApiError).body.validations?.[0]?.field).toBe("name");
  await awaitReady(world, 1);
});

test("[PB-13] only template admins see prebuilds, and their times cannot be changed", async () => {
  await using world = await openWorld();
  const { admin, server } = world;
  const { template } = await createTemplate(admin, manifestWithPrebuilds(1));
  const [one] = await awaitReady(world, 1);
  const id = one?.id as string;
  if (server.context) {
    const { organization_id } = template;
    const outsider = admin.withToken((await seedUser(server, { username: "bob", organization_id })).token);
    expect(await outsider.get<Page>("/api/v2/workspaces")).toMatchObject({ count: 0 });
    expect((await outsider.fetch("GET", `/api/v2/workspaces/${id}`)).status).toBe(404);
    const keeper = await seedUser(server, { username: "tia", organization_id, roles: ["template-admin"] });
    expect(await listOwned(admin.withToken(keeper.token), "prebuilds")).toMatchObject({ count: 1 });
  }
  expect((await admin.fetch("PUT", `/api/v2/workspaces/${id}/ttl`, { ttl_ms: 3_600_000 })).status).toBe(409);
  expect((await admin.fetch("PUT", `/api/v2/workspaces/${id}/autostart`, { schedule: "0 9 * * *" })).status).toBe(409);
  const readTemplate = await admin.get<{ active_user_count: number }>(`/api/v2/templates/${template.id}`);
  expect(readTemplate.active_user_count).toBe(0);
});

test("[PB-2] another active version replaces all prebuilds; a deprecated template has none and can be deleted", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const { template_id } = await createTemplate(admin, manifestWithPrebuilds(2));
  const old = await awaitReady(world, 2);
  const version = await importVersion(admin, JSON.stringify(manifestWithPrebuilds(1)), { template_id });
  await admin.patch(`/api/v2/templates/${template_id}/versions`, { id: version.id });
  const fresh = await awaitReady(world, 1, (one) => one.latest_build.template_version_id === version.id);
  expect(old.map(({ id }) => id)).not.toContain(fresh[0]?.id as string);
  await admin.patch(`/api/v2/templates/${template_id}`, { deprecation_message: "Use another." });
  await awaitReady(world, 0);
  await admin.delete(`/api/v2/templates/${template_id}`);
});

test("[PB-7] twenty concurrent requests get three: no two the same, and everyone else a new one", async () => {
  await using world = await openWorld({ env: { SLIPWAY_PROVISIONER_SLOTS: "4" } });
  const { admin } = world;
  const { template_id, preset } = await createTemplate(admin, manifestWithPrebuilds(3));
  const keptIds = (await awaitReady(world, 3)).map(({ id }) => id);
  const body = { template_id, template_version_preset_id: preset("Small") };
  const created = await Promise.all(Array.from({ length: 20 }, (_, i) => create(admin, { ...body, name: `w${i}` })));
  expect(new Set(created.map(({ id }) => id)).size).toBe(20);
  expect(created.every(({ owner_name }, i) => owner_name === "admin" && created[i]?.name === `w${i}`)).toBe(true);
  const claimed = created.filter(({ id }) => keptIds.includes(id));
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

test("[PB-17] a preset that cannot have prebuilds says why in the health report and at the preset, until it is resolved", async () => {
  await using world = await openWorld();
  const { admin, server } = world;
  const asking = [...(PARAMETERS ?? []), { name: "region" }];
  const { template, presets } = await createTemplate(admin, manifestWithPrebuilds(1, { parameters: asking }));
  const listFindings = async () => {
    const { findings: all } = await admin.get<HealthReport>("/api/v2/debug/health?force=true");
    return all.filter(({ name }) => name === "prebuilds");
  };
  const [found] = await until(async () => {
    await server.context?.scheduler.tick();
    const findings = await listFindings();
    return findings.length > 0 ? findings : undefined;
  });
  expect(found).toMatchObject({ severity: "warning", dismissed: false });
  expect(found?.detail).toStartWith(`preset Small of template ${template.name} cannot be prebuilt: `);
  expect(found?.detail).toContain("region");
  const read = (client: Client) =>
    client.get<(Preset & { prebuild_problem?: string })[]>(
      `/api/v2/templateversions/${template.active_version_id}/presets`,
    );
  expect((await read(admin)).map(({ prebuild_problem = "" }) => prebuild_problem.includes("region"))).toEqual([
    true,
    false,
  ]);
  const outsider = (await newPerson(admin, "carol")).client;
  expect(await read(outsider)).toEqual(presets as never);
  const better = await importVersion(admin, JSON.stringify(manifestWithPrebuilds(1)), { template_id: template.id });
  await admin.patch(`/api/v2/templates/${template.id}/versions`, { id: better.id });
  await awaitReady(world, 1);
  await until(async () => ((await listFindings()).length === 0 ? true : undefined));
});

test("[PB-17] a preset of local workspaces on a server that starts none says so, with the refusal's message", async () => {
  await using world = await openWorld({ env: { SLIPWAY_TRUSTED_PROXIES: "127.0.0.1/32" } });
  const { admin, server } = world;
  const { template } = await createTemplate(
    admin,
    manifestWithPrebuilds(1, { provisioner: "local", resources: ECHO.resources }),
  );
  const path = `/api/v2/templateversions/${template.active_version_id}/presets`;
  const problem = await until(async () => {
    await server.context?.scheduler.tick();
    const [preset] = await admin.get<(Preset & { prebuild_problem?: string })[]>(path);
    return preset?.prebuild_problem;
  });
  expect(problem).toContain("Local workspaces");
});

testInside("[PB-4] a failed build is retried with growing delays, and given up after the third time", async () => {
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
  // As if a day had passed: every failure's pause is over.
  const age = () => store.commit([{ sql: "update jobs set completed_at = completed_at - 86400000", rows: [[]] }]);
  await prebuilds.reconcile(template_id);
  expect((await store.all(listPrebuilds({ template_id }))).length).toBe(1);
  for (const count of [2, 3]) {
    await age();
    await prebuilds.reconcile(template_id);
    await awaitFailed(count);
  }
  await age();
  await prebuilds.reconcile(template_id);
  expect((await store.all(listPrebuilds({ template_id }))).length).toBe(3);
  // Another version starts over and cleans up.
  const version = await importVersion(admin, JSON.stringify(manifestWithPrebuilds(1)), { template_id });
  await admin.patch(`/api/v2/templates/${template_id}/versions`, { id: version.id });
  await awaitReady(world, 1);
});

testInside("[PB-3] an unclaimed one is replaced when its time expires", async () => {
  await using world = await openWorld();
  const { admin, server } = world;
  const { store, prebuilds } = getContext(server);
  const presets = [{ name: "Small", parameters: { size: "small" }, prebuilds: { instances: 1, ttl_ms: 3_600_000 } }];
  const { template_id } = await createTemplate(admin, manifestWithPrebuilds(1, { presets }));
  const [old] = await awaitReady(world, 1);
  await prebuilds.reconcile(template_id);
  expect((await awaitReady(world, 1))[0]?.id).toBe(old?.id as string);
  await store.commit([{ sql: "update jobs set completed_at = completed_at - 3600000", rows: [[]] }]);
  await prebuilds.reconcile(template_id);
  const [fresh] = await awaitReady(world, 1, ({ id }) => id !== old?.id);
  expect(fresh?.is_prebuild).toBe(true);
});

(usesActiveNodes ? testSingleServer("memory") : testInside)(
  "[PB-3] builds of prebuilds wait for builds that people request, even if people request them later",
  async () => {
    await using world = await openWorld({ env: { SLIPWAY_PROVISIONER_SLOTS: "1" } });
    const { admin, server } = world;
    const { clock, jobs, prebuilds } = getContext(server);
    const { template_id, preset } = await createTemplate(admin, manifestWithPrebuilds(1));
    await awaitReady(world, 1);
    const free = Promise.withResolvers<void>();
    jobs.submit({ id: crypto.randomUUID(), created_at: clock.now(), urgency: "person", run: () => free.promise });
    const createFromPreset = (name: string, kind: string) =>
      create(admin, { name, template_id, template_version_preset_id: preset(kind) });
    const claimed = await createFromPreset("mine", "Small");
    await prebuilds.reconcile(template_id);
    const [next] = (await listOwned(admin, "prebuilds")).workspaces;
    const lateWorkspace = await createFromPreset("late", "Large");
    const positions = [claimed, lateWorkspace, next].map(
      (one) => jobs.position(one?.latest_build.job.id ?? "").queue_position,
    );
    expect(positions).toEqual([1, 2, 3]);
    free.resolve();
    await awaitBuild(admin, lateWorkspace.id);
  },
);

test("[PB-7] a claim of a claimed, deleted or stopped workspace falls back to a new one", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const { template_id, preset } = await createTemplate(admin, manifestWithPrebuilds(1));
  const [one] = await awaitReady(world, 1);
  await createBuild(admin, one?.id as string, "stop");
  const body = { name: "mine", template_id, template_version_preset_id: preset("Small") };
  expect((await create(admin, body)).id).not.toBe(one?.id as string);
});

testInside("[PB-18] pausing creates and removes none, and resuming takes effect immediately", async () => {
  await using world = await openWorld();
  const { admin, server } = world;
  const { scheduler } = getContext(server);
  const { template_id, preset } = await createTemplate(admin, manifestWithPrebuilds(1));
  const [kept] = await awaitReady(world, 1);
  const pause = (reconciliation_paused: boolean) =>
    admin.put<object>("/api/v2/prebuilds/settings", { reconciliation_paused });
  expect(await pause(true)).toEqual({ reconciliation_paused: true });
  const claimed = await create(admin, { name: "mine", template_id, template_version_preset_id: preset("Small") });
  expect(claimed.id).toBe(kept?.id as string);
  await awaitBuild(admin, claimed.id);
  for (let i = 0; i < 5; i++) await scheduler.tick();
  expect((await listOwned(admin, "prebuilds")).count).toBe(0);
  const report = await admin.get<HealthReport>("/api/v2/debug/health?force=true");
  expect(JSON.stringify(report)).toContain("Prebuilt workspaces are paused.");
  const { client: ada } = await newPerson(admin, "ada");
  const refused = await ada.fetch("PUT", "/api/v2/prebuilds/settings", { reconciliation_paused: false });
  expect(refused.status).toBe(403);
  await pause(false);
  await awaitReady(world, 1);
  const { audit_logs } = await admin.get<{ audit_logs: { diff: object }[] }>(
    "/api/v2/audit?q=resource_type:prebuilds_settings&limit=10",
  );
  expect(audit_logs.map(({ diff }) => diff)).toEqual([
    { reconciliation_paused: { old: true, new: false, secret: false } },
    {},
    { reconciliation_paused: { old: false, new: true, secret: false } },
  ]);
});

test("[PB-7] [GR-7] a prebuild that the quota of its new owner does not cover is not claimed", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const resources = [{ name: "main", daily_cost: 4 }];
  const { template, template_id, preset } = await createTemplate(admin, manifestWithPrebuilds(1, { resources }));
  await admin.patch(`/api/v2/groups/${template.organization_id}`, { quota_allowance: 4 });
  const body = { template_id, template_version_preset_id: preset("Small") };
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
  const { template_id, preset } = await createTemplate(admin, manifestWithPrebuilds(1));
  const [ready] = await awaitReady(world, 1);
  const { user } = await newPerson(admin, "guest");
  const share = () => admin.patch(`/api/v2/workspaces/${ready?.id}/acl`, { user_roles: { [user.id]: "use" } });
  await expect(share()).rejects.toMatchObject({
    status: 409,
    message: expect.stringContaining("A prebuilt workspace can be shared only after it is claimed."),
  });
  const mine = await create(admin, { name: "mine", template_id, template_version_preset_id: preset("Small") });
  expect(mine.id).toBe(ready?.id as string);
  await awaitBuild(admin, mine.id);
  await share();
});
