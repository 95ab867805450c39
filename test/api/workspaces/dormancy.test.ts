// Dormant workspaces: made dormant by people and by time, woken, deleted; and template changes that affect their times.
import { expect, test } from "bun:test";
import type { Template } from "#schema/templates/template.ts";
import type { Workspace, Workspaces } from "#schema/workspaces/workspace.ts";
import { getContext } from "#test/support/seed.ts";
import { awaitBuild } from "#test/support/workspaces.ts";
import {
  awaitDeleted,
  awaitOutcome,
  type Clockwork,
  DAY,
  HOUR,
  openClockwork,
  read,
  toMinute,
  toWorkspacePath,
} from "./clock-world.ts";

const DAILY_AT_2PM = "CRON_TZ=UTC 0 14 * * *";
const setDormant = (time: Clockwork, one: { id: string }, dormant: boolean) =>
  time.owner.put<Workspace>(toWorkspacePath(one, "/dormant"), { dormant });

test("[TI-25] a running workspace that becomes dormant is stopped, hidden from the list, and woken again", async () => {
  await using time = await openClockwork({ template: { time_til_dormant_autodelete_ms: 3 * DAY } });
  const workspace = await time.make({ ttl_ms: 5 * HOUR, autostart_schedule: DAILY_AT_2PM });
  const asleep = await setDormant(time, workspace, true);
  expect(asleep.latest_build).toMatchObject({ build_number: 2, transition: "stop", reason: "dormancy" });
  expect([toMinute(asleep.dormant_at), toMinute(asleep.deleting_at), asleep.next_start_at]).toEqual([
    "2030-01-01T12:00",
    "2030-01-04T12:00",
    undefined,
  ]);
  await awaitBuild(time.owner, workspace.id);
  const unchanged = await setDormant(time, workspace, true);
  expect([unchanged.dormant_at, unchanged.latest_build.build_number]).toEqual([asleep.dormant_at, 2]);
  const list = (q: string) => time.owner.get<Workspaces>(`/api/v2/workspaces?q=${encodeURIComponent(q)}`);
  expect([(await list("owner:me")).count, (await list("owner:me dormant:true")).count]).toEqual([0, 1]);
  expect((await time.pass(5 * HOUR, workspace.id))?.latest_build.build_number).toBe(2);
  const awake = await setDormant(time, workspace, false);
  expect([awake.dormant_at, awake.deleting_at, toMinute(awake.last_used_at), toMinute(awake.next_start_at)]).toEqual([
    undefined,
    undefined,
    "2030-01-01T17:00",
    "2030-01-02T14:00",
  ]);
  expect((await setDormant(time, workspace, false)).dormant_at).toBeUndefined();
  const reasons = (await time.activity(workspace.id)).entries.map(({ reason, actor }) => `${reason} by ${actor.name}`);
  expect(reasons).toEqual(["wake by ada", "dormancy by ada", "start by server"]);
});

test("[TI-25] starting a dormant workspace wakes it; a deleted one cannot become dormant", async () => {
  await using time = await openClockwork();
  const workspace = await time.make();
  await setDormant(time, workspace, true);
  await awaitBuild(time.owner, workspace.id);
  await time.pass(HOUR);
  const started = await time.build(workspace.id, "start");
  expect([started.dormant_at, toMinute(started.last_used_at)]).toEqual([undefined, "2030-01-01T13:00"]);
  await time.build(workspace.id, "delete");
  expect(await awaitOutcome(setDormant(time, workspace, true))).toBe("410");
});

test("[TI-22] an unused workspace becomes dormant: stopped if it runs, only marked if it is stopped", async () => {
  await using time = await openClockwork({ template: { time_til_dormant_ms: 2 * DAY } });
  const running = await time.make();
  const stopped = await time.make();
  const used = await time.make();
  await time.build(stopped.id, "stop");
  expect((await time.activity(running.id)).next).toMatchObject({
    what: "make_dormant",
    at: "2030-01-03T12:00:00.000Z",
  });
  await time.pass(DAY);
  await time.owner.post(toWorkspacePath(used, "/usage"));
  await time.pass(DAY);
  const asleep = await awaitBuild(time.owner, running.id);
  expect(asleep.latest_build).toMatchObject({ status: "stopped", reason: "dormancy", build_number: 2 });
  expect(toMinute(asleep.dormant_at)).toBe("2030-01-03T12:00");
  const marked = await read(time.owner, stopped);
  expect([toMinute(marked.dormant_at), marked.latest_build.build_number]).toEqual(["2030-01-03T12:00", 2]);
  expect((await read(time.owner, used)).dormant_at).toBeUndefined();
  expect((await time.activity(stopped.id)).entries[0]).toMatchObject({
    reason: "dormancy",
    detail: "It has not been used since 2030-01-01T12:00:00.000Z.",
  });
});

test("[TI-22] use that is not yet written prevents dormancy", async () => {
  await using time = await openClockwork({ template: { time_til_dormant_ms: DAY } });
  const workspace = await time.make();
  time.clock.leap(DAY - 1000);
  await time.owner.post(toWorkspacePath(workspace, "/usage"));
  await getContext(time.server).workspaces.ask(workspace.id, "runSchedule", {});
  const awake = await read(time.owner, workspace);
  expect([awake.dormant_at, toMinute(awake.last_used_at)]).toEqual([undefined, "2030-01-02T11:59"]);
  expect(await time.timers(workspace.id)).toEqual(["2030-01-03T11:59:59.000Z"]);
});

test("[TI-23] a dormant workspace is deleted eventually; a failed delete is retried after a day", async () => {
  await using time = await openClockwork({ template: { time_til_dormant_autodelete_ms: 3 * DAY } });
  const { store } = getContext(time.server);
  const [easy, hard] = [await time.make(), await time.make()];
  for (const one of [easy, hard]) {
    await setDormant(time, one, true);
    await awaitBuild(time.owner, one.id);
  }
  const setProvisioner = (provisioner: string) =>
    store.commit([
      {
        sql: "update template_versions set manifest = replace(manifest, ?, ?) where id = ?",
        rows: [
          [
            `"provisioner":"${provisioner === "echo" ? "missing" : "echo"}"`,
            `"provisioner":"${provisioner}"`,
            time.version_id,
          ],
        ],
      },
    ]);
  expect((await time.activity(easy.id)).next).toMatchObject({ what: "delete", at: "2030-01-04T12:00:00.000Z" });
  await setProvisioner("missing");
  const failed = await time.pass(3 * DAY, hard.id);
  expect(failed?.latest_build).toMatchObject({ status: "failed", transition: "delete", reason: "autodelete" });
  await awaitBuild(time.owner, easy.id);
  await setProvisioner("echo");
  expect((await time.pass(DAY - 1000, hard.id))?.latest_build.build_number).toBe(3);
  await time.pass(1000);
  const deletedWorkspace = await awaitDeleted(time.owner, hard.id);
  expect(deletedWorkspace.latest_build).toMatchObject({ build_number: 4, reason: "autodelete" });
  await awaitDeleted(time.owner, easy.id);
  expect(await time.timers(hard.id)).toEqual([]);
});

test("[TI-24] a template change applies to its workspaces' times, optionally counted from now", async () => {
  await using time = await openClockwork({ template: { time_til_dormant_autodelete_ms: 30 * DAY } });
  const [asleep, awake] = [await time.make(), await time.make({ autostart_schedule: DAILY_AT_2PM })];
  await setDormant(time, asleep, true);
  await awaitBuild(time.owner, asleep.id);
  const change = async (body: object) => {
    await time.admin.patch<Template>(`/api/v2/templates/${time.template_id}`, body);
    await time.pass(1000);
  };
  const deleting = async () => toMinute((await read(time.owner, asleep)).deleting_at);
  expect(await deleting()).toBe("2030-01-31T12:00");
  await change({ time_til_dormant_autodelete_ms: 10 * DAY });
  expect(await deleting()).toBe("2030-01-11T12:00");
  await change({ time_til_dormant_autodelete_ms: 0 });
  expect(await deleting()).toBeUndefined();
  await time.pass(5 * DAY);
  await change({ time_til_dormant_autodelete_ms: 7 * DAY, update_workspace_dormant_at: true });
  expect(await deleting()).toBe("2030-01-13T12:00");
  await change({ autostart_requirement: { days_of_week: ["monday"] } });
  expect(toMinute((await read(time.owner, awake)).next_start_at)).toBe("2030-01-07T14:00");
  await change({ time_til_dormant_ms: DAY, update_workspace_last_used_at: true });
  const unchanged = await read(time.owner, awake);
  expect([unchanged.dormant_at, toMinute(unchanged.last_used_at)]).toEqual([undefined, "2030-01-06T12:00"]);
  await change({ allow_user_autostart: false });
  expect((await read(time.owner, awake)).next_start_at).toBeUndefined();
});

test("[TI-24] a template change applies to a workspace that computes its times concurrently", async () => {
  await using time = await openClockwork();
  const { scheduler } = getContext(time.server);
  const workspace = await time.make();
  let [changes, most] = [0, 0];
  const changeBefore = (limit: number): void => {
    [changes, most] = [0, limit];
  };
  // Whichever node has the workspace.
  for (const { store } of time.server.contexts) {
    const commit = store.commit.bind(store);
    store.commit = async (batch, ...more) => {
      // The earlier rules have decided this time.
      const decides = batch.some(({ rows }) => rows.flat().includes(`workspace/${workspace.id}/schedule`));
      if (decides && changes < most) {
        const rules = { time_til_dormant_autodelete_ms: (++changes + most) * DAY };
        await time.admin.patch<Template>(`/api/v2/templates/${time.template_id}`, rules);
      }
      return commit(batch, ...more);
    };
  }
  changeBefore(1);
  await setDormant(time, workspace, true);
  await awaitBuild(time.owner, workspace.id);
  await scheduler.tick();
  expect(toMinute((await read(time.owner, workspace)).deleting_at)).toBe("2030-01-03T12:00");
  // A workspace that is notified of a change while another change arrives.
  changeBefore(2);
  await time.admin.patch<Template>(`/api/v2/templates/${time.template_id}`, { time_til_dormant_autodelete_ms: 0 });
  await scheduler.tick();
  await scheduler.tick();
  await scheduler.tick();
  expect([changes, toMinute((await read(time.owner, workspace)).deleting_at)]).toEqual([2, "2030-01-05T12:00"]);
});

test("[TI-24] a template change applies to all of its workspaces, however many, in one tick of the clock", async () => {
  await using time = await openClockwork();
  const { store } = getContext(time.server);
  const workspace = await time.make();
  await time.build(workspace.id, "stop");
  const many = Array.from({ length: 350 }, (_, i) => `00000000-0000-4000-8000-${String(i).padStart(12, "0")}`);
  const columns = "organization_id, template_id, created_at, updated_at, last_used_at, deleted, version, favorite";
  // Copies of a stopped workspace that share its build, which is enough for lists.
  await store.commit([
    {
      sql: `insert into workspaces (id, owner_id, name, dormant_at, latest_build_id, ${columns})
        select ?, owner_id, ?, ?, latest_build_id, ${columns} from workspaces where id = ?`,
      rows: many.map((id, i) => [id, `copy-${i}`, time.clock.now(), workspace.id]),
    },
  ]);
  await time.admin.patch<Template>(`/api/v2/templates/${time.template_id}`, { time_til_dormant_autodelete_ms: DAY });
  await getContext(time.server).scheduler.tick();
  const remainingCount = await store.get({
    sql: "select count(*) from workspaces where dormant_at is not null and deleting_at is null",
    params: [],
    map: ([count]) => count,
  });
  expect(remainingCount).toBe(0);
});

test("[TI-28] a required stop that the template adds, moves or removes applies to running workspaces, and people are notified", async () => {
  await using time = await openClockwork();
  const workspace = await time.make();
  const change = async (days_of_week: string[]): Promise<(string | undefined)[]> => {
    await time.admin.patch<Template>(`/api/v2/templates/${time.template_id}`, {
      autostop_requirement: { days_of_week, weeks: 1 },
    });
    await time.pass(1000);
    const { deadline, max_deadline } = (await read(time.owner, workspace)).latest_build;
    return [toMinute(deadline), toMinute(max_deadline)];
  };
  expect(await change(["wednesday"])).toEqual(["2030-01-02T00:00", "2030-01-02T00:00"]);
  expect((await time.activity(workspace.id)).entries[0]).toMatchObject({
    reason: "template",
    actor: { kind: "server" },
  });
  expect(await change(["friday"])).toEqual(["2030-01-04T00:00", "2030-01-04T00:00"]);
  expect(await change([])).toEqual([undefined, undefined]);
  expect(await change(["wednesday"])).toEqual(["2030-01-02T00:00", "2030-01-02T00:00"]);
  expect((await time.pass(12 * HOUR, workspace.id))?.latest_build).toMatchObject({
    reason: "autostop",
    status: "stopped",
  });
});

test("[TI-29] a dormant workspace opens no terminal and shows no ports", async () => {
  await using time = await openClockwork();
  const workspace = await time.make();
  const agent = `/api/v2/workspaceagents/${workspace.latest_build.resources[0]?.agents[0]?.id}`;
  const requests = [`${agent}/listening-ports`, `${agent}/pty?reconnect=${workspace.id}`];
  const statuses = () => Promise.all(requests.map(async (path) => (await time.owner.fetch("GET", path)).status));
  expect(await statuses()).not.toContain(409);
  await setDormant(time, workspace, true);
  expect(await statuses()).toEqual([409, 409]);
});
