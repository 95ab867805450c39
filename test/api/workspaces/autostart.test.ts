// Autostart of workspaces: setting a schedule over HTTP, and starts at the scheduled time, including daylight saving changes.
import { describe, expect, test } from "bun:test";
import { uuid } from "#base/ids.ts";
import { updateTemplate } from "#db/templates/templates.ts";
import { updateMember } from "#db/users/members.ts";
import type { Template } from "#schema/templates/template.ts";
import type { Client } from "#src/client.ts";
import { getContext, seedUser } from "#test/support/seed.ts";
import { ECHO, seedTemplate } from "#test/support/workspaces.ts";
import {
  awaitOutcome,
  type ClockWorld,
  DAY,
  HOUR,
  MINUTE,
  openClockWorld,
  read,
  toMinute,
  toWorkspacePath,
} from "./clock-world.ts";

const DAILY_AT_2PM = "CRON_TZ=UTC 0 14 * * *";
const setSchedule = (world: ClockWorld, workspace: { id: string }, schedule?: unknown) =>
  awaitOutcome(world.owner.put(toWorkspacePath(workspace, "/autostart"), { schedule }));

test("[TI-1] [TI-17] an owner sets and removes a schedule; the workspace shows the next start, and errors name the invalid field", async () => {
  await using world = await openClockWorld();
  const workspace = await world.make({ autostart_schedule: DAILY_AT_2PM });
  expect([workspace.autostart_schedule, toMinute(workspace.next_start_at)]).toEqual([DAILY_AT_2PM, "2030-01-01T14:00"]);
  expect(await setSchedule(world, workspace, "CRON_TZ=America/New_York 30 9 * * 1-5")).toBe("ok");
  expect(toMinute((await read(world.owner, workspace)).next_start_at)).toBe("2030-01-01T14:30");
  for (const invalid of ["@daily", "CRON_TZ=Local 0 9 * * *", "0 9 1 * *", "nonsense"]) {
    expect(await setSchedule(world, workspace, invalid)).toBe("400 schedule");
    expect(await awaitOutcome(world.make({ autostart_schedule: invalid }))).toBe("400 schedule");
  }
  for (const noSchedule of [null, ""]) {
    expect(await setSchedule(world, workspace, noSchedule)).toBe("ok");
    const withoutSchedule = await read(world.owner, workspace);
    expect([withoutSchedule.autostart_schedule, withoutSchedule.next_start_at]).toEqual([undefined, undefined]);
  }
  await getContext(world.server).store.commit([updateTemplate(world.template_id, { allow_user_autostart: false })]);
  expect(await setSchedule(world, workspace, DAILY_AT_2PM)).toBe("400");
  expect(await awaitOutcome(world.make({ autostart_schedule: DAILY_AT_2PM }))).toBe("400 schedule");
});

test("[TI-17] a stopped workspace starts at its scheduled time with reason autostart, and shows the next start", async () => {
  await using world = await openClockWorld();
  const workspace = await world.make({ autostart_schedule: DAILY_AT_2PM });
  await world.runBuild(workspace.id, "stop");
  expect((await world.loadActivity(workspace.id)).next).toMatchObject({
    what: "start",
    at: "2030-01-01T14:00:00.000Z",
  });
  expect((await world.advance(2 * HOUR - 1000, workspace.id))?.latest_build.build_number).toBe(2);
  const started = await world.advance(1000, workspace.id);
  expect(started?.latest_build).toMatchObject({ status: "running", reason: "autostart", initiator_name: "ada" });
  expect(toMinute(started?.next_start_at)).toBe("2030-01-02T14:00");
  const later = await world.advance(DAY, workspace.id);
  expect([later?.latest_build.build_number, toMinute(later?.next_start_at)]).toEqual([3, "2030-01-03T14:00"]);
  expect(await world.listTimers(workspace.id)).toEqual(["2030-01-03T14:00:00.000Z"]);
});

describe("[TI-2] [TI-17] a workspace starts at nine local time every morning, including days with clock changes", () => {
  test.each([
    ["Europe/Berlin", "2030-03-30T12:00:00Z", ["2030-03-31T07:00", "2030-04-01T07:00"]],
    ["Europe/Berlin", "2030-10-26T12:00:00Z", ["2030-10-27T08:00", "2030-10-28T08:00"]],
    ["America/New_York", "2030-03-09T18:00:00Z", ["2030-03-10T13:00", "2030-03-11T13:00"]],
    ["America/New_York", "2030-11-02T18:00:00Z", ["2030-11-03T14:00", "2030-11-04T14:00"]],
  ])("%s from %s", async (zone, at, mornings) => {
    await using world = await openClockWorld({ at });
    const workspace = await world.make({ autostart_schedule: `CRON_TZ=${zone} 0 9 * * *`, ttl_ms: HOUR });
    await world.runBuild(workspace.id, "stop");
    for (const morning of mornings) {
      const remainingMs = Date.parse(`${morning}:00Z`) - world.clock.now();
      expect((await world.advance(remainingMs - 1000, workspace.id))?.latest_build.status).toBe("stopped");
      const started = await world.advance(1000, workspace.id);
      expect(started?.latest_build).toMatchObject({ status: "running", reason: "autostart" });
      expect(toMinute(started?.latest_build.created_at)).toBe(morning);
      const stopped = await world.advance(HOUR, workspace.id);
      expect(stopped?.latest_build).toMatchObject({ status: "stopped", reason: "autostop" });
    }
  });
});

test("[TI-18] autostart is skipped for dormant owners, forbidden days and dormant workspaces, and the next start moves on", async () => {
  await using world = await openClockWorld();
  const { store } = getContext(world.server);
  const workspace = await world.make({ autostart_schedule: DAILY_AT_2PM });
  await world.runBuild(workspace.id, "stop");
  const setOwnerStatus = (status: string) =>
    store.commit([{ sql: "update users set status = ? where id = ?", rows: [[status, world.owner_id]] }]);
  await setOwnerStatus("dormant");
  await world.advance(2 * HOUR);
  await setOwnerStatus("active");
  const skipped = await read(world.owner, workspace);
  expect([skipped.latest_build.build_number, toMinute(skipped.next_start_at)]).toEqual([2, "2030-01-02T14:00"]);
  const days = { autostart_requirement: { days_of_week: ["friday"] } };
  await world.admin.patch<Template>(`/api/v2/templates/${world.template_id}`, days);
  await world.advance(1000);
  expect(toMinute((await read(world.owner, workspace)).next_start_at)).toBe("2030-01-04T14:00");
  expect((await world.advance(2 * DAY, workspace.id))?.latest_build.build_number).toBe(2);
  await world.owner.put(toWorkspacePath(workspace, "/dormant"), { dormant: true });
  expect((await read(world.owner, workspace)).next_start_at).toBeUndefined();
  expect((await world.advance(8 * DAY))?.latest_build.build_number).toBeUndefined();
  expect((await read(world.owner, workspace)).latest_build.build_number).toBe(2);
});

test("[WK-34] autostart skips the workspaces of an owner who was removed from the organization", async () => {
  await using world = await openClockWorld();
  const workspace = await world.make({ autostart_schedule: DAILY_AT_2PM });
  await world.runBuild(workspace.id, "stop");
  await world.admin.delete(`/api/v2/organizations/default/members/${world.owner_id}`);
  expect((await world.advance(2 * HOUR, workspace.id))?.latest_build.build_number).toBe(2);
  const [entry] = (await world.loadActivity(workspace.id)).entries;
  expect(entry).toMatchObject({ reason: "autostart_skipped", detail: expect.stringContaining("not a member") });
});

test("[WK-33] a workspace that starts on an administrator's schedule gets no owner's data until the owner starts it or sets the schedule", async () => {
  const token = uuid();
  const resources = [{ name: "main", agents: [{ name: "dev", token }] }];
  await using world = await openClockWorld({ manifest: { provisioner: "echo", resources } });
  const { organization_id } = world;
  const ora = await seedUser(world.server, { username: "ora", organization_id });
  const { store } = getContext(world.server);
  const roles = ["organization-admin"];
  await store.commit([
    updateMember({ organization_id, user_id: ora.user_id, roles, updated_at: 0 }),
    { sql: "update api_keys set expires_at = 9e15", rows: [[]] },
  ]);
  const administrator = world.admin.withToken(ora.token);
  const workspace = await world.make();
  const setScheduleAs = (client: Client, schedule: string): Promise<unknown> =>
    client.put(toWorkspacePath(workspace, "/autostart"), { schedule });
  /** Returns the reason of the latest start, and whether its agent gets the owner's data. */
  const passUntilStart = async (): Promise<readonly [string | undefined, boolean]> => {
    const started = await world.advance(DAY, workspace.id);
    const { status } = await world.owner.withToken(token).fetch("GET", "/api/v2/workspaceagents/me/gitsshkey");
    await world.runBuild(workspace.id, "stop");
    return [started?.latest_build.reason, status === 200];
  };
  await world.runBuild(workspace.id, "stop");
  await setScheduleAs(administrator, DAILY_AT_2PM);
  expect(await passUntilStart()).toEqual(["autostart", false]);
  // When the owner only stops the workspace, the restriction stays.
  expect(await passUntilStart()).toEqual(["autostart", false]);
  await world.runBuild(workspace.id, "start");
  await world.runBuild(workspace.id, "stop");
  expect(await passUntilStart()).toEqual(["autostart", true]);
  await setScheduleAs(administrator, "CRON_TZ=UTC 0 15 * * *");
  await setScheduleAs(world.owner, "CRON_TZ=UTC 0 15 * * *");
  expect(await passUntilStart()).toEqual(["autostart", true]);
  // An administrator who sets the owner's schedule again does not take it over.
  await setScheduleAs(administrator, "CRON_TZ=UTC 0 15 * * *");
  expect(await passUntilStart()).toEqual(["autostart", true]);
});

test("[TI-20] [TI-19] autostart keeps the workspace's version, or uses the active one if configured; the activity explains a skipped start", async () => {
  await using world = await openClockWorld();
  const { store } = getContext(world.server);
  const workspace = await world.make({ autostart_schedule: DAILY_AT_2PM });
  const newer = await seedTemplate(world.server);
  const sql = "update template_versions set template_id = ?, name = 'second' where id = ?";
  await store.commit([
    { sql, rows: [[world.template_id, newer.version_id]] },
    updateTemplate(world.template_id, { active_version_id: newer.version_id }),
  ]);
  await world.runBuild(workspace.id, "stop");
  const onOldVersion = await world.advance(2 * HOUR, workspace.id);
  expect(onOldVersion?.latest_build.template_version_id).toBe(world.version_id);
  await world.owner.put(toWorkspacePath(workspace, "/autoupdates"), { automatic_updates: "always" });
  await world.runBuild(workspace.id, "stop");
  const onNewVersion = await world.advance(DAY, workspace.id);
  expect(onNewVersion?.latest_build).toMatchObject({ template_version_id: newer.version_id, reason: "autostart" });
  const parameters = [{ name: "size", type: "string", required: true }];
  await store.commit([
    {
      sql: "update template_versions set manifest = ? where id = ?",
      rows: [[JSON.stringify({ ...ECHO, parameters }), newer.version_id]],
    },
  ]);
  await world.runBuild(workspace.id, "stop");
  const stopped = await world.advance(DAY, workspace.id);
  expect([stopped?.latest_build.status, toMinute(stopped?.next_start_at)]).toEqual(["stopped", "2030-01-04T14:00"]);
  const [entry] = (await world.loadActivity(workspace.id)).entries;
  expect(entry).toMatchObject({ reason: "autostart_skipped", actor: { kind: "server" } });
  expect(entry?.detail).toContain("size");
});

test("[TI-19] the server skips an autostart for which no worker matches, instead of queueing it", async () => {
  const manifest = { ...ECHO, tags: { place: "moon" } };
  await using world = await openClockWorld();
  const workspace = await world.make({ autostart_schedule: DAILY_AT_2PM });
  await world.runBuild(workspace.id, "stop");
  await getContext(world.server).store.commit([
    {
      sql: "update template_versions set manifest = ? where id = ?",
      rows: [[JSON.stringify(manifest), world.version_id]],
    },
  ]);
  expect((await world.advance(2 * HOUR + MINUTE, workspace.id))?.latest_build.build_number).toBe(2);
  const [entry] = (await world.loadActivity(workspace.id)).entries;
  expect(entry).toMatchObject({ reason: "autostart_skipped", detail: "No worker with the build's tags is connected." });
});
