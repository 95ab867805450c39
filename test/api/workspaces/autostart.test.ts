// Autostart of workspaces: the schedule over HTTP, and what happens at its time, also at daylight saving changes.
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
  type Clockwork,
  DAY,
  HOUR,
  MINUTE,
  openClockwork,
  read,
  toMinute,
  toWorkspacePath,
} from "./clock-world.ts";

const DAILY_AT_2PM = "CRON_TZ=UTC 0 14 * * *";
const setSchedule = (time: Clockwork, one: { id: string }, schedule?: unknown) =>
  awaitOutcome(time.owner.put(toWorkspacePath(one, "/autostart"), { schedule }));

test("[TI-1] [TI-17] a schedule is set, shown with its next time, refused by name, and removed", async () => {
  await using time = await openClockwork();
  const workspace = await time.make({ autostart_schedule: DAILY_AT_2PM });
  expect([workspace.autostart_schedule, toMinute(workspace.next_start_at)]).toEqual([DAILY_AT_2PM, "2030-01-01T14:00"]);
  expect(await setSchedule(time, workspace, "CRON_TZ=America/New_York 30 9 * * 1-5")).toBe("ok");
  expect(toMinute((await read(time.owner, workspace)).next_start_at)).toBe("2030-01-01T14:30");
  for (const bad of ["@daily", "CRON_TZ=Local 0 9 * * *", "0 9 1 * *", "nonsense"]) {
    expect(await setSchedule(time, workspace, bad)).toBe("400 schedule");
    expect(await awaitOutcome(time.make({ autostart_schedule: bad }))).toBe("400 schedule");
  }
  for (const off of [null, ""]) {
    expect(await setSchedule(time, workspace, off)).toBe("ok");
    const never = await read(time.owner, workspace);
    expect([never.autostart_schedule, never.next_start_at]).toEqual([undefined, undefined]);
  }
  await getContext(time.server).store.commit([updateTemplate(time.template_id, { allow_user_autostart: false })]);
  expect(await setSchedule(time, workspace, DAILY_AT_2PM)).toBe("400");
  expect(await awaitOutcome(time.make({ autostart_schedule: DAILY_AT_2PM }))).toBe("400 schedule");
});

test("[TI-17] a stopped workspace starts at its time with reason autostart, and the next time is shown", async () => {
  await using time = await openClockwork();
  const workspace = await time.make({ autostart_schedule: DAILY_AT_2PM });
  await time.build(workspace.id, "stop");
  expect((await time.activity(workspace.id)).next).toMatchObject({ what: "start", at: "2030-01-01T14:00:00.000Z" });
  expect((await time.pass(2 * HOUR - 1000, workspace.id))?.latest_build.build_number).toBe(2);
  const started = await time.pass(1000, workspace.id);
  expect(started?.latest_build).toMatchObject({ status: "running", reason: "autostart", initiator_name: "ada" });
  expect(toMinute(started?.next_start_at)).toBe("2030-01-02T14:00");
  const later = await time.pass(DAY, workspace.id);
  expect([later?.latest_build.build_number, toMinute(later?.next_start_at)]).toEqual([3, "2030-01-03T14:00"]);
  expect(await time.timers(workspace.id)).toEqual(["2030-01-03T14:00:00.000Z"]);
});

describe("[TI-2] [TI-17] each morning at nine local time, including days with clock changes", () => {
  test.each([
    ["Europe/Berlin", "2030-03-30T12:00:00Z", ["2030-03-31T07:00", "2030-04-01T07:00"]],
    ["Europe/Berlin", "2030-10-26T12:00:00Z", ["2030-10-27T08:00", "2030-10-28T08:00"]],
    ["America/New_York", "2030-03-09T18:00:00Z", ["2030-03-10T13:00", "2030-03-11T13:00"]],
    ["America/New_York", "2030-11-02T18:00:00Z", ["2030-11-03T14:00", "2030-11-04T14:00"]],
  ])("%s from %s", async (zone, at, mornings) => {
    await using time = await openClockwork({ at });
    const workspace = await time.make({ autostart_schedule: `CRON_TZ=${zone} 0 9 * * *`, ttl_ms: HOUR });
    await time.build(workspace.id, "stop");
    for (const morning of mornings) {
      const wait = Date.parse(`${morning}:00Z`) - time.clock.now();
      expect((await time.pass(wait - 1000, workspace.id))?.latest_build.status).toBe("stopped");
      const up = await time.pass(1000, workspace.id);
      expect(up?.latest_build).toMatchObject({ status: "running", reason: "autostart" });
      expect(toMinute(up?.latest_build.created_at)).toBe(morning);
      const down = await time.pass(HOUR, workspace.id);
      expect(down?.latest_build).toMatchObject({ status: "stopped", reason: "autostop" });
    }
  });
});

test("[TI-18] a dormant owner, a forbidden day and a dormant workspace start nothing; the next time advances", async () => {
  await using time = await openClockwork();
  const { store } = getContext(time.server);
  const workspace = await time.make({ autostart_schedule: DAILY_AT_2PM });
  await time.build(workspace.id, "stop");
  const status = (word: string) =>
    store.commit([{ sql: "update users set status = ? where id = ?", rows: [[word, time.owner_id]] }]);
  await status("dormant");
  await time.pass(2 * HOUR);
  await status("active");
  const skipped = await read(time.owner, workspace);
  expect([skipped.latest_build.build_number, toMinute(skipped.next_start_at)]).toEqual([2, "2030-01-02T14:00"]);
  const days = { autostart_requirement: { days_of_week: ["friday"] } };
  await time.admin.patch<Template>(`/api/v2/templates/${time.template_id}`, days);
  await time.pass(1000);
  expect(toMinute((await read(time.owner, workspace)).next_start_at)).toBe("2030-01-04T14:00");
  expect((await time.pass(2 * DAY, workspace.id))?.latest_build.build_number).toBe(2);
  await time.owner.put(toWorkspacePath(workspace, "/dormant"), { dormant: true });
  expect((await read(time.owner, workspace)).next_start_at).toBeUndefined();
  expect((await time.pass(8 * DAY))?.latest_build.build_number).toBeUndefined();
  expect((await read(time.owner, workspace)).latest_build.build_number).toBe(2);
});

test("[WK-34] nothing starts automatically for an owner who was removed from the organization", async () => {
  await using time = await openClockwork();
  const workspace = await time.make({ autostart_schedule: DAILY_AT_2PM });
  await time.build(workspace.id, "stop");
  await time.admin.delete(`/api/v2/organizations/default/members/${time.owner_id}`);
  expect((await time.pass(2 * HOUR, workspace.id))?.latest_build.build_number).toBe(2);
  const [entry] = (await time.activity(workspace.id)).entries;
  expect(entry).toMatchObject({ reason: "autostart_skipped", detail: expect.stringContaining("not a member") });
});

test("[WK-33] a workspace on a schedule that an administrator has set starts without its owner's data until the owner starts it or sets the schedule", async () => {
  const token = uuid();
  const resources = [{ name: "main", agents: [{ name: "dev", token }] }];
  await using time = await openClockwork({ manifest: { provisioner: "echo", resources } });
  const { organization_id } = time;
  const outsider = await seedUser(time.server, { username: "ora", organization_id });
  const { store } = getContext(time.server);
  const roles = ["organization-admin"];
  await store.commit([
    updateMember({ organization_id, user_id: outsider.user_id, roles, updated_at: 0 }),
    { sql: "update api_keys set expires_at = 9e15", rows: [[]] },
  ]);
  const administrator = time.admin.withToken(outsider.token);
  const workspace = await time.make();
  const schedule = (client: Client, text: string): Promise<unknown> =>
    client.put(toWorkspacePath(workspace, "/autostart"), { schedule: text });
  /** Returns the reason of the latest start, and whether its agent gets the owner's data. */
  const passUntilStart = async (): Promise<readonly [string | undefined, boolean]> => {
    const started = await time.pass(DAY, workspace.id);
    const { status } = await time.owner.withToken(token).fetch("GET", "/api/v2/workspaceagents/me/gitsshkey");
    await time.build(workspace.id, "stop");
    return [started?.latest_build.reason, status === 200];
  };
  await time.build(workspace.id, "stop");
  await schedule(administrator, DAILY_AT_2PM);
  expect(await passUntilStart()).toEqual(["autostart", false]);
  // The owner's stop does not start a workspace.
  expect(await passUntilStart()).toEqual(["autostart", false]);
  await time.build(workspace.id, "start");
  await time.build(workspace.id, "stop");
  expect(await passUntilStart()).toEqual(["autostart", true]);
  await schedule(administrator, "CRON_TZ=UTC 0 15 * * *");
  await schedule(time.owner, "CRON_TZ=UTC 0 15 * * *");
  expect(await passUntilStart()).toEqual(["autostart", true]);
  // A schedule that the owner has set stays the owner's when an administrator sets the same.
  await schedule(administrator, "CRON_TZ=UTC 0 15 * * *");
  expect(await passUntilStart()).toEqual(["autostart", true]);
});

test("[TI-20] [TI-19] an autostart keeps its version or, on request, uses the active one; the activity shows why it was skipped", async () => {
  await using time = await openClockwork();
  const { store } = getContext(time.server);
  const workspace = await time.make({ autostart_schedule: DAILY_AT_2PM });
  const newer = await seedTemplate(time.server);
  const sql = "update template_versions set template_id = ?, name = 'second' where id = ?";
  await store.commit([
    { sql, rows: [[time.template_id, newer.version_id]] },
    updateTemplate(time.template_id, { active_version_id: newer.version_id }),
  ]);
  await time.build(workspace.id, "stop");
  const keptWorkspace = await time.pass(2 * HOUR, workspace.id);
  expect(keptWorkspace?.latest_build.template_version_id).toBe(time.version_id);
  await time.owner.put(toWorkspacePath(workspace, "/autoupdates"), { automatic_updates: "always" });
  await time.build(workspace.id, "stop");
  const moved = await time.pass(DAY, workspace.id);
  expect(moved?.latest_build).toMatchObject({ template_version_id: newer.version_id, reason: "autostart" });
  const parameters = [{ name: "size", type: "string", required: true }];
  await store.commit([
    {
      sql: "update template_versions set manifest = ? where id = ?",
      rows: [[JSON.stringify({ ...ECHO, parameters }), newer.version_id]],
    },
  ]);
  await time.build(workspace.id, "stop");
  const stopped = await time.pass(DAY, workspace.id);
  expect([stopped?.latest_build.status, toMinute(stopped?.next_start_at)]).toEqual(["stopped", "2030-01-04T14:00"]);
  const [entry] = (await time.activity(workspace.id)).entries;
  expect(entry).toMatchObject({ reason: "autostart_skipped", actor: { kind: "server" } });
  expect(entry?.detail).toContain("size");
});

test("[TI-19] an autostart without a matching worker is skipped and not queued", async () => {
  const manifest = { ...ECHO, tags: { place: "moon" } };
  await using time = await openClockwork();
  const workspace = await time.make({ autostart_schedule: DAILY_AT_2PM });
  await time.build(workspace.id, "stop");
  await getContext(time.server).store.commit([
    {
      sql: "update template_versions set manifest = ? where id = ?",
      rows: [[JSON.stringify(manifest), time.version_id]],
    },
  ]);
  expect((await time.pass(2 * HOUR + MINUTE, workspace.id))?.latest_build.build_number).toBe(2);
  const [entry] = (await time.activity(workspace.id)).entries;
  expect(entry).toMatchObject({ reason: "autostart_skipped", detail: "No worker with the build's tags is connected." });
});
