// Presets with different numbers of prebuilt workspaces at different hours, by a schedule with a time zone.
import { expect, test } from "bun:test";
import { listDueTimers } from "#db/engine/timers.ts";
import { listPrebuilds } from "#db/workspaces/prebuilds.ts";
import { resolvePrebuilds } from "#schema/workspaces/prebuilds.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { getContext } from "#test/support/seed.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { openWorld } from "#test/support/workspaces.ts";

const schedule = {
  timezone: "Europe/Berlin",
  entries: [
    { cron: "* 8-17 * * *", instances: 2 },
    { cron: "* 12 * * *", instances: 5 },
  ],
};
const preset = { name: "Day", parameters: {}, prebuilds: { instances: 0, schedule } };

test("[PB-16] the number of prebuilds is that of the schedule entry for the current hour, or the largest of several; without an entry, it is the preset's", () => {
  const countAtHour = (hour: number): number => resolvePrebuilds(preset, Date.UTC(2030, 0, 1, hour, 30)).instances;
  // Berlin is an hour ahead in winter.
  expect([6, 7, 11, 16, 17].map(countAtHour)).toEqual([0, 2, 5, 2, 0]);
  expect(resolvePrebuilds({ ...preset, prebuilds: 3 }, 0)).toEqual({ instances: 3, ttl_ms: 0, is_scheduled: false });
});

testInProcess("[PB-16] a preset that wants no prebuilds now is checked again in five minutes", async () => {
  const clock = new ManualClock(Date.UTC(2030, 0, 1, 2));
  await using world = await openWorld({ clock });
  const { store, prebuilds } = getContext(world.server);
  const manifest = { provisioner: "echo", presets: [preset], resources: [{ name: "main" }] };
  const { id } = await makeTemplate(world.admin, JSON.stringify(manifest));
  await prebuilds.reconcile(id);
  expect(await store.all(listPrebuilds({ template_id: id }))).toEqual([]);
  const due = (await store.all(listDueTimers({ now: 9e15 }))).find(({ actor_id }) => actor_id === id)?.due;
  expect(due).toBe(clock.now() + 5 * 60_000);
});
