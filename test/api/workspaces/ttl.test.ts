// How long workspaces run: the time to live over HTTP, and moving the deadline.
import { expect, test } from "bun:test";
import { updateTemplate } from "#db/templates/templates.ts";
import type { Client } from "#src/client.ts";
import { getContext, seedUser } from "#test/support/seed.ts";
import { awaitOutcome, DAY, HOUR, MINUTE, openClockwork, read, toMinute, toWorkspacePath } from "./clock-world.ts";

test("[TI-4] [TI-7] a workspace shows its time to live in whole minutes, and its deadline once it runs", async () => {
  await using time = await openClockwork({ template: { default_ttl_ms: 4 * HOUR } });
  const chosen = await time.make({ ttl_ms: 90 * MINUTE + 59_999 });
  expect([chosen.ttl_ms, toMinute(chosen.latest_build.deadline)]).toEqual([90 * MINUTE, "2030-01-01T13:30"]);
  for (const ttl_ms of [undefined, null, 0]) {
    const byDefault = await time.make({ ttl_ms });
    expect([byDefault.ttl_ms, toMinute(byDefault.latest_build.deadline)]).toEqual([4 * HOUR, "2030-01-01T16:00"]);
  }
});

test("[TI-7] a new time to live applies from the next start; removing it removes the deadline", async () => {
  await using time = await openClockwork();
  const workspace = await time.make({ ttl_ms: HOUR });
  const set = (ttl_ms?: unknown) => awaitOutcome(time.owner.put(toWorkspacePath(workspace, "/ttl"), { ttl_ms }));
  expect(await set(3 * HOUR + 1)).toBe("ok");
  const unchanged = await read(time.owner, workspace);
  expect([unchanged.ttl_ms, toMinute(unchanged.latest_build.deadline)]).toEqual([3 * HOUR, "2030-01-01T13:00"]);
  for (const off of [null, 0]) {
    expect(await set(3 * HOUR)).toBe("ok");
    expect(await set(off)).toBe("ok");
    const never = await read(time.owner, workspace);
    expect([never.ttl_ms, never.latest_build.deadline]).toEqual([undefined, undefined]);
  }
  expect((await time.pass(40 * DAY, workspace.id))?.latest_build.status).toBe("running");
  expect(await set(3 * HOUR)).toBe("ok");
  await time.build(workspace.id, "stop");
  const restarted = await time.build(workspace.id, "start");
  expect(toMinute(restarted.latest_build.deadline)).toBe("2030-02-10T15:00");
});

test("[TI-7] an invalid time to live is refused by name, also if the template forbids one", async () => {
  await using time = await openClockwork();
  const workspace = await time.make({ ttl_ms: HOUR });
  const set = (ttl_ms?: unknown) => awaitOutcome(time.owner.put(toWorkspacePath(workspace, "/ttl"), { ttl_ms }));
  expect(await set(MINUTE)).toBe("ok");
  expect(await set(30 * DAY)).toBe("ok");
  for (const ttl of [MINUTE - 1, 30 * DAY + 1, -1]) expect(await set(ttl)).toBe("400 ttl_ms");
  expect((await set("1h")).slice(0, 3)).toBe("400");
  expect(await awaitOutcome(time.make({ ttl_ms: 1 }))).toBe("400 ttl_ms");
  const { store } = getContext(time.server);
  const forbids = { allow_user_autostop: false, default_ttl_ms: 2 * HOUR };
  await store.commit([updateTemplate(time.template_id, forbids)]);
  expect(await set(HOUR)).toBe("400");
  expect(await awaitOutcome(time.make({ ttl_ms: HOUR }))).toBe("400 ttl_ms");
  const forced = await time.make();
  expect([forced.ttl_ms, toMinute(forced.latest_build.deadline)]).toEqual([2 * HOUR, "2030-01-01T14:00"]);
});

test("[TI-6] a required stop is the latest deadline and stops a workspace without a time to live", async () => {
  const template = { autostop_requirement_days: ["wednesday"], autostop_requirement_weeks: 1 };
  await using time = await openClockwork({ template });
  const workspace = await time.make();
  const { deadline, max_deadline } = workspace.latest_build;
  expect([toMinute(deadline), toMinute(max_deadline)]).toEqual(["2030-01-02T00:00", "2030-01-02T00:00"]);
  const { next } = await time.activity(workspace.id);
  expect(next).toMatchObject({ what: "stop", why: "Its template requires a stop." });
  expect((await time.pass(12 * HOUR, workspace.id))?.latest_build).toMatchObject({
    status: "stopped",
    reason: "autostop",
  });
});

test("[TI-31] a required stop happens in the owner's quiet hours, in their zone; changing them moves the stops of running workspaces, with a notification", async () => {
  const template = { autostop_requirement_days: ["wednesday"], autostop_requirement_weeks: 1 };
  await using time = await openClockwork({ template });
  const path = "/api/v2/users/me/quiet-hours";
  expect(await time.owner.get<object>(path)).toEqual({
    raw_schedule: "CRON_TZ=UTC 0 0 * * *",
    user_set: false,
    user_can_set: true,
    time: "00:00",
    timezone: "UTC",
    next: "2030-01-02T00:00:00.000Z",
  });
  const workspace = await time.make();
  const set = (schedule: string, who: Client = time.owner, user = "me") =>
    awaitOutcome(who.put<unknown>(`/api/v2/users/${user}/quiet-hours`, { schedule }));
  expect(await set("CRON_TZ=America/New_York 30 21 * * *")).toBe("ok");
  await time.settle();
  // Wednesday evening in New York is Thursday in UTC.
  const { deadline, max_deadline } = (await read(time.owner, workspace)).latest_build;
  expect([toMinute(deadline), toMinute(max_deadline)]).toEqual(["2030-01-03T02:30", "2030-01-03T02:30"]);
  expect(await time.owner.get<object>(path)).toMatchObject({
    time: "21:30",
    timezone: "America/New_York",
    user_set: true,
  });
  const { entries } = await time.activity(workspace.id);
  expect(entries[0]).toMatchObject({ detail: "The time of the required stop has changed." });
  // A deadline that would have passed is moved to two hours from now.
  time.clock.leap(14 * HOUR);
  expect(await set("CRON_TZ=UTC 0 1 * * *")).toBe("ok");
  await time.settle();
  expect(toMinute((await read(time.owner, workspace)).latest_build.max_deadline)).toBe("2030-01-02T04:00");

  for (const wrong of [
    "0 9 * * 1-5",
    "*/5 9 * * *",
    "0 9,10 * * *",
    "CRON_TZ=Nowhere/City 0 9 * * *",
    "@daily",
    "9:30",
  ]) {
    expect([wrong, await set(wrong)]).toEqual([wrong, "400 schedule"]);
  }
  const { token } = await seedUser(time.server, { organization_id: time.organization_id });
  expect(await set("", time.admin.withToken(token), "ada")).toBe("404");
  expect(await set("", time.admin, "ada")).toBe("ok");
  expect(await time.owner.get<object>(path)).toMatchObject({ user_set: false });
  const audit = await time.admin.get<{ audit_logs: { diff: object }[] }>("/api/v2/audit?q=resource_type:user&limit=5");
  // The clock is stopped, so the order of entries is undefined.
  expect(audit.audit_logs.map(({ diff }) => diff)).toContainEqual({
    quiet_hours_schedule: { old: "CRON_TZ=UTC 0 1 * * *", new: "", secret: false },
  });
});
