// Dormant workspaces: how they become dormant, wake and are deleted, and template changes that move these times.
import { expect, test } from "bun:test";
import type { Template } from "#schema/templates/template.ts";
import type { Workspace, Workspaces } from "#schema/workspaces/workspace.ts";
import { getContext } from "#test/support/seed.ts";
import { awaitBuild } from "#test/support/workspaces.ts";
import {
  awaitDeleted,
  awaitOutcome,
  type ClockWorld,
  DAY,
  HOUR,
  openClockWorld,
  read,
  toMinute,
  toWorkspacePath,
} from "./clock-world.ts";

const DAILY_AT_2PM = "CRON_TZ=UTC 0 14 * * *";
const setDormant = (world: ClockWorld, workspace: { id: string }, dormant: boolean) =>
  world.owner.put<Workspace>(toWorkspacePath(workspace, "/dormant"), { dormant });

test("[TI-25] a running workspace that becomes dormant stops and leaves the default list, and can be woken", async () => {
  await using world = await openClockWorld({ template: { time_til_dormant_autodelete_ms: 3 * DAY } });
  const workspace = await world.make({ ttl_ms: 5 * HOUR, autostart_schedule: DAILY_AT_2PM });
  const asleep = await setDormant(world, workspace, true);
  expect(asleep.latest_build).toMatchObject({ build_number: 2, transition: "stop", reason: "dormancy" });
  expect([toMinute(asleep.dormant_at), toMinute(asleep.deleting_at), asleep.next_start_at]).toEqual([
    "2030-01-01T12:00",
    "2030-01-04T12:00",
    undefined,
  ]);
  await awaitBuild(world.owner, workspace.id);
  const unchanged = await setDormant(world, workspace, true);
  expect([unchanged.dormant_at, unchanged.latest_build.build_number]).toEqual([asleep.dormant_at, 2]);
  const list = (q: string) => world.owner.get<Workspaces>(`/api/v2/workspaces?q=${encodeURIComponent(q)}`);
  expect([(await list("owner:me")).count, (await list("owner:me dormant:true")).count]).toEqual([0, 1]);
  expect((await world.advance(5 * HOUR, workspace.id))?.latest_build.build_number).toBe(2);
  const awake = await setDormant(world, workspace, false);
  expect([awake.dormant_at, awake.deleting_at, toMinute(awake.last_used_at), toMinute(awake.next_start_at)]).toEqual([
    undefined,
    undefined,
    "2030-01-01T17:00",
    "2030-01-02T14:00",
  ]);
  expect((await setDormant(world, workspace, false)).dormant_at).toBeUndefined();
  const reasons = (await world.loadActivity(workspace.id)).entries.map(
    ({ reason, actor }) => `${reason} by ${actor.name}`,
  );
  expect(reasons).toEqual(["wake by ada", "dormancy by ada", "start by server"]);
});

test("[TI-25] starting a dormant workspace wakes it; a deleted workspace cannot become dormant", async () => {
  await using world = await openClockWorld();
  const workspace = await world.make();
  await setDormant(world, workspace, true);
  await awaitBuild(world.owner, workspace.id);
  await world.advance(HOUR);
  const started = await world.runBuild(workspace.id, "start");
  expect([started.dormant_at, toMinute(started.last_used_at)]).toEqual([undefined, "2030-01-01T13:00"]);
  await world.runBuild(workspace.id, "delete");
  expect(await awaitOutcome(setDormant(world, workspace, true))).toBe("410");
});

test("[TI-22] an unused workspace becomes dormant, and stops if it runs", async () => {
  await using world = await openClockWorld({ template: { time_til_dormant_ms: 2 * DAY } });
  const running = await world.make();
  const stopped = await world.make();
  const used = await world.make();
  await world.runBuild(stopped.id, "stop");
  expect((await world.loadActivity(running.id)).next).toMatchObject({
    what: "make_dormant",
    at: "2030-01-03T12:00:00.000Z",
  });
  await world.advance(DAY);
  await world.owner.post(toWorkspacePath(used, "/usage"));
  await world.advance(DAY);
  const asleep = await awaitBuild(world.owner, running.id);
  expect(asleep.latest_build).toMatchObject({ status: "stopped", reason: "dormancy", build_number: 2 });
  expect(toMinute(asleep.dormant_at)).toBe("2030-01-03T12:00");
  const marked = await read(world.owner, stopped);
  expect([toMinute(marked.dormant_at), marked.latest_build.build_number]).toEqual(["2030-01-03T12:00", 2]);
  expect((await read(world.owner, used)).dormant_at).toBeUndefined();
  expect((await world.loadActivity(stopped.id)).entries[0]).toMatchObject({
    reason: "dormancy",
    detail: "It has not been used since 2030-01-01T12:00:00.000Z.",
  });
});

test("[TI-22] use that the server has not stored yet prevents dormancy", async () => {
  await using world = await openClockWorld({ template: { time_til_dormant_ms: DAY } });
  const workspace = await world.make();
  world.clock.leap(DAY - 1000);
  await world.owner.post(toWorkspacePath(workspace, "/usage"));
  await getContext(world.server).workspaces.ask(workspace.id, "runSchedule", {});
  const awake = await read(world.owner, workspace);
  expect([awake.dormant_at, toMinute(awake.last_used_at)]).toEqual([undefined, "2030-01-02T11:59"]);
  expect(await world.listTimers(workspace.id)).toEqual(["2030-01-03T11:59:59.000Z"]);
});

test("[TI-23] a dormant workspace is deleted after the template's period; a failed delete is retried after a day", async () => {
  await using world = await openClockWorld({ template: { time_til_dormant_autodelete_ms: 3 * DAY } });
  const { store } = getContext(world.server);
  const [deleted, retried] = [await world.make(), await world.make()];
  for (const workspace of [deleted, retried]) {
    await setDormant(world, workspace, true);
    await awaitBuild(world.owner, workspace.id);
  }
  const setProvisioner = (provisioner: string) =>
    store.commit([
      {
        sql: "update template_versions set manifest = replace(manifest, ?, ?) where id = ?",
        rows: [
          [
            `"provisioner":"${provisioner === "echo" ? "missing" : "echo"}"`,
            `"provisioner":"${provisioner}"`,
            world.version_id,
          ],
        ],
      },
    ]);
  expect((await world.loadActivity(deleted.id)).next).toMatchObject({ what: "delete", at: "2030-01-04T12:00:00.000Z" });
  await setProvisioner("missing");
  const afterFailure = await world.advance(3 * DAY, retried.id);
  expect(afterFailure?.latest_build).toMatchObject({ status: "failed", transition: "delete", reason: "autodelete" });
  await awaitBuild(world.owner, deleted.id);
  await setProvisioner("echo");
  expect((await world.advance(DAY - 1000, retried.id))?.latest_build.build_number).toBe(3);
  await world.advance(1000);
  const afterRetry = await awaitDeleted(world.owner, retried.id);
  expect(afterRetry.latest_build).toMatchObject({ build_number: 4, reason: "autodelete" });
  await awaitDeleted(world.owner, deleted.id);
  expect(await world.listTimers(retried.id)).toEqual([]);
});

test("[TI-24] a template change moves the times of its workspaces, optionally counted from now", async () => {
  await using world = await openClockWorld({ template: { time_til_dormant_autodelete_ms: 30 * DAY } });
  const [asleep, awake] = [await world.make(), await world.make({ autostart_schedule: DAILY_AT_2PM })];
  await setDormant(world, asleep, true);
  await awaitBuild(world.owner, asleep.id);
  const changeTemplate = async (body: object) => {
    await world.admin.patch<Template>(`/api/v2/templates/${world.template_id}`, body);
    await world.advance(1000);
  };
  const loadDeletingAt = async () => toMinute((await read(world.owner, asleep)).deleting_at);
  expect(await loadDeletingAt()).toBe("2030-01-31T12:00");
  await changeTemplate({ time_til_dormant_autodelete_ms: 10 * DAY });
  expect(await loadDeletingAt()).toBe("2030-01-11T12:00");
  await changeTemplate({ time_til_dormant_autodelete_ms: 0 });
  expect(await loadDeletingAt()).toBeUndefined();
  await world.advance(5 * DAY);
  await changeTemplate({ time_til_dormant_autodelete_ms: 7 * DAY, update_workspace_dormant_at: true });
  expect(await loadDeletingAt()).toBe("2030-01-13T12:00");
  await changeTemplate({ autostart_requirement: { days_of_week: ["monday"] } });
  expect(toMinute((await read(world.owner, awake)).next_start_at)).toBe("2030-01-07T14:00");
  await changeTemplate({ time_til_dormant_ms: DAY, update_workspace_last_used_at: true });
  const unchanged = await read(world.owner, awake);
  expect([unchanged.dormant_at, toMinute(unchanged.last_used_at)]).toEqual([undefined, "2030-01-06T12:00"]);
  await changeTemplate({ allow_user_autostart: false });
  expect((await read(world.owner, awake)).next_start_at).toBeUndefined();
});

test("[TI-24] a template change also applies to a workspace that is computing its times at that moment", async () => {
  await using world = await openClockWorld();
  const { scheduler } = getContext(world.server);
  const workspace = await world.make();
  let [changes, maxChanges] = [0, 0];
  const changeBefore = (limit: number): void => {
    [changes, maxChanges] = [0, limit];
  };
  // Any of the nodes may have the workspace.
  for (const { store } of world.server.contexts) {
    const commit = store.commit.bind(store);
    store.commit = async (batch, ...more) => {
      // The workspace has computed this time with the previous template settings.
      const storesTime = batch.some(({ rows }) => rows.flat().includes(`workspace/${workspace.id}/schedule`));
      if (storesTime && changes < maxChanges) {
        const newTimes = { time_til_dormant_autodelete_ms: (++changes + maxChanges) * DAY };
        await world.admin.patch<Template>(`/api/v2/templates/${world.template_id}`, newTimes);
      }
      return commit(batch, ...more);
    };
  }
  changeBefore(1);
  await setDormant(world, workspace, true);
  await awaitBuild(world.owner, workspace.id);
  await scheduler.tick();
  expect(toMinute((await read(world.owner, workspace)).deleting_at)).toBe("2030-01-03T12:00");
  // A second change arrives while the workspace handles the first one.
  changeBefore(2);
  await world.admin.patch<Template>(`/api/v2/templates/${world.template_id}`, { time_til_dormant_autodelete_ms: 0 });
  await scheduler.tick();
  await scheduler.tick();
  await scheduler.tick();
  expect([changes, toMinute((await read(world.owner, workspace)).deleting_at)]).toEqual([2, "2030-01-05T12:00"]);
});

test("[TI-24] a template change applies to all of its 350 workspaces within one tick of the scheduler", async () => {
  await using world = await openClockWorld();
  const { store } = getContext(world.server);
  const workspace = await world.make();
  await world.runBuild(workspace.id, "stop");
  const copyIds = Array.from({ length: 350 }, (_, i) => `00000000-0000-4000-8000-${String(i).padStart(12, "0")}`);
  const columns = "organization_id, template_id, created_at, updated_at, last_used_at, deleted, version, favorite";
  // Copies of a stopped workspace that share its build, which is enough for lists.
  await store.commit([
    {
      sql: `insert into workspaces (id, owner_id, name, dormant_at, latest_build_id, ${columns})
        select ?, owner_id, ?, ?, latest_build_id, ${columns} from workspaces where id = ?`,
      rows: copyIds.map((id, i) => [id, `copy-${i}`, world.clock.now(), workspace.id]),
    },
  ]);
  await world.admin.patch<Template>(`/api/v2/templates/${world.template_id}`, { time_til_dormant_autodelete_ms: DAY });
  await getContext(world.server).scheduler.tick();
  const remainingCount = await store.get({
    sql: "select count(*) from workspaces where dormant_at is not null and deleting_at is null",
    params: [],
    map: ([count]) => count,
  });
  expect(remainingCount).toBe(0);
});

test("[TI-28] a required stop that the template adds, moves or removes applies to running workspaces and appears in their activity", async () => {
  await using world = await openClockWorld();
  const workspace = await world.make();
  const changeTemplate = async (days_of_week: string[]): Promise<(string | undefined)[]> => {
    await world.admin.patch<Template>(`/api/v2/templates/${world.template_id}`, {
      autostop_requirement: { days_of_week, weeks: 1 },
    });
    await world.advance(1000);
    const { deadline, max_deadline } = (await read(world.owner, workspace)).latest_build;
    return [toMinute(deadline), toMinute(max_deadline)];
  };
  expect(await changeTemplate(["wednesday"])).toEqual(["2030-01-02T00:00", "2030-01-02T00:00"]);
  expect((await world.loadActivity(workspace.id)).entries[0]).toMatchObject({
    reason: "template",
    actor: { kind: "server" },
  });
  expect(await changeTemplate(["friday"])).toEqual(["2030-01-04T00:00", "2030-01-04T00:00"]);
  expect(await changeTemplate([])).toEqual([undefined, undefined]);
  expect(await changeTemplate(["wednesday"])).toEqual(["2030-01-02T00:00", "2030-01-02T00:00"]);
  expect((await world.advance(12 * HOUR, workspace.id))?.latest_build).toMatchObject({
    reason: "autostop",
    status: "stopped",
  });
});

test("[TI-29] a dormant workspace opens no terminal and shows no ports", async () => {
  await using world = await openClockWorld();
  const workspace = await world.make();
  const agent = `/api/v2/workspaceagents/${workspace.latest_build.resources[0]?.agents[0]?.id}`;
  const requests = [`${agent}/listening-ports`, `${agent}/pty?reconnect=${workspace.id}`];
  const statuses = () => Promise.all(requests.map(async (path) => (await world.owner.fetch("GET", path)).status));
  expect(await statuses()).not.toContain(409);
  await setDormant(world, workspace, true);
  expect(await statuses()).toEqual([409, 409]);
});
