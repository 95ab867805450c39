// How long workspaces run: time to live, required stops and quiet hours.
import { expect, test } from "bun:test";
import { updateTemplate } from "#db/templates/templates.ts";
import type { Client } from "#src/client.ts";
import { getContext, seedUser } from "#test/support/seed.ts";
import { awaitOutcome, DAY, HOUR, MINUTE, openClockWorld, read, toMinute, toWorkspacePath } from "./clock-world.ts";

test("[TI-4] [TI-7] a running workspace shows its time to live in whole minutes, and its deadline", async () => {
  await using world = await openClockWorld({ template: { default_ttl_ms: 4 * HOUR } });
  const chosen = await world.make({ ttl_ms: 90 * MINUTE + 59_999 });
  expect([chosen.ttl_ms, toMinute(chosen.latest_build.deadline)]).toEqual([90 * MINUTE, "2030-01-01T13:30"]);
  for (const ttl_ms of [undefined, null, 0]) {
    const byDefault = await world.make({ ttl_ms });
    expect([byDefault.ttl_ms, toMinute(byDefault.latest_build.deadline)]).toEqual([4 * HOUR, "2030-01-01T16:00"]);
  }
});

test("[TI-7] a new time to live applies from the next start; removing it removes the deadline", async () => {
  await using world = await openClockWorld();
  const workspace = await world.make({ ttl_ms: HOUR });
  const setTtl = (ttl_ms?: unknown) => awaitOutcome(world.owner.put(toWorkspacePath(workspace, "/ttl"), { ttl_ms }));
  expect(await setTtl(3 * HOUR + 1)).toBe("ok");
  const unchanged = await read(world.owner, workspace);
  expect([unchanged.ttl_ms, toMinute(unchanged.latest_build.deadline)]).toEqual([3 * HOUR, "2030-01-01T13:00"]);
  for (const noTtl of [null, 0]) {
    expect(await setTtl(3 * HOUR)).toBe("ok");
    expect(await setTtl(noTtl)).toBe("ok");
    const withoutTtl = await read(world.owner, workspace);
    expect([withoutTtl.ttl_ms, withoutTtl.latest_build.deadline]).toEqual([undefined, undefined]);
  }
  expect((await world.advance(40 * DAY, workspace.id))?.latest_build.status).toBe("running");
  expect(await setTtl(3 * HOUR)).toBe("ok");
  await world.runBuild(workspace.id, "stop");
  const restarted = await world.runBuild(workspace.id, "start");
  expect(toMinute(restarted.latest_build.deadline)).toBe("2030-02-10T15:00");
});

test("[TI-7] errors name an invalid time to live, also if the template does not allow users to set one", async () => {
  await using world = await openClockWorld();
  const workspace = await world.make({ ttl_ms: HOUR });
  const setTtl = (ttl_ms?: unknown) => awaitOutcome(world.owner.put(toWorkspacePath(workspace, "/ttl"), { ttl_ms }));
  expect(await setTtl(MINUTE)).toBe("ok");
  expect(await setTtl(30 * DAY)).toBe("ok");
  for (const ttl of [MINUTE - 1, 30 * DAY + 1, -1]) expect(await setTtl(ttl)).toBe("400 ttl_ms");
  expect((await setTtl("1h")).slice(0, 3)).toBe("400");
  expect(await awaitOutcome(world.make({ ttl_ms: 1 }))).toBe("400 ttl_ms");
  const { store } = getContext(world.server);
  const noAutostopChoice = { allow_user_autostop: false, default_ttl_ms: 2 * HOUR };
  await store.commit([updateTemplate(world.template_id, noAutostopChoice)]);
  expect(await setTtl(HOUR)).toBe("400");
  expect(await awaitOutcome(world.make({ ttl_ms: HOUR }))).toBe("400 ttl_ms");
  const forced = await world.make();
  expect([forced.ttl_ms, toMinute(forced.latest_build.deadline)]).toEqual([2 * HOUR, "2030-01-01T14:00"]);
});

test("[TI-6] a required stop is the deadline of a workspace without a time to live, and stops it", async () => {
  const template = { autostop_requirement_days: ["wednesday"], autostop_requirement_weeks: 1 };
  await using world = await openClockWorld({ template });
  const workspace = await world.make();
  const { deadline, max_deadline } = workspace.latest_build;
  expect([toMinute(deadline), toMinute(max_deadline)]).toEqual(["2030-01-02T00:00", "2030-01-02T00:00"]);
  const { next } = await world.loadActivity(workspace.id);
  expect(next).toMatchObject({ what: "stop", why: "Its template requires a stop." });
  expect((await world.advance(12 * HOUR, workspace.id))?.latest_build).toMatchObject({
    status: "stopped",
    reason: "autostop",
  });
});

test("[TI-31] required stops happen in the owner's quiet hours; changing those moves the stops of running workspaces", async () => {
  const template = { autostop_requirement_days: ["wednesday"], autostop_requirement_weeks: 1 };
  await using world = await openClockWorld({ template });
  const path = "/api/v2/users/me/quiet-hours";
  expect(await world.owner.get<object>(path)).toEqual({
    raw_schedule: "CRON_TZ=UTC 0 0 * * *",
    user_set: false,
    user_can_set: true,
    time: "00:00",
    timezone: "UTC",
    next: "2030-01-02T00:00:00.000Z",
  });
  const workspace = await world.make();
  const setQuietHours = (schedule: string, client: Client = world.owner, user = "me") =>
    awaitOutcome(client.put<unknown>(`/api/v2/users/${user}/quiet-hours`, { schedule }));
  expect(await setQuietHours("CRON_TZ=America/New_York 30 21 * * *")).toBe("ok");
  await world.settle();
  // Wednesday evening in New York is Thursday in UTC.
  const { deadline, max_deadline } = (await read(world.owner, workspace)).latest_build;
  expect([toMinute(deadline), toMinute(max_deadline)]).toEqual(["2030-01-03T02:30", "2030-01-03T02:30"]);
  expect(await world.owner.get<object>(path)).toMatchObject({
    time: "21:30",
    timezone: "America/New_York",
    user_set: true,
  });
  const { entries } = await world.loadActivity(workspace.id);
  expect(entries[0]).toMatchObject({ detail: "The time of the required stop has changed." });
  // A deadline that would have passed is moved to two hours from now.
  world.clock.leap(14 * HOUR);
  expect(await setQuietHours("CRON_TZ=UTC 0 1 * * *")).toBe("ok");
  await world.settle();
  expect(toMinute((await read(world.owner, workspace)).latest_build.max_deadline)).toBe("2030-01-02T04:00");

  for (const invalid of [
    "0 9 * * 1-5",
    "*/5 9 * * *",
    "0 9,10 * * *",
    "CRON_TZ=Nowhere/City 0 9 * * *",
    "@daily",
    "9:30",
  ]) {
    expect([invalid, await setQuietHours(invalid)]).toEqual([invalid, "400 schedule"]);
  }
  const { token } = await seedUser(world.server, { organization_id: world.organization_id });
  expect(await setQuietHours("", world.admin.withToken(token), "ada")).toBe("404");
  expect(await setQuietHours("", world.admin, "ada")).toBe("ok");
  expect(await world.owner.get<object>(path)).toMatchObject({ user_set: false });
  const audit = await world.admin.get<{ audit_logs: { diff: object }[] }>("/api/v2/audit?q=resource_type:user&limit=5");
  // The clock is stopped, so the order of entries is undefined.
  expect(audit.audit_logs.map(({ diff }) => diff)).toContainEqual({
    quiet_hours_schedule: { old: "CRON_TZ=UTC 0 1 * * *", new: "", secret: false },
  });
});
