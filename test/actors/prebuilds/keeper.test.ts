// A prebuild check that does not complete.
import { expect } from "bun:test";
import { PrebuildKeeper } from "#actors/prebuilds/keeper.ts";
import { listDueTimers } from "#db/engine/timers.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { getContext } from "#test/support/seed.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { openWorld } from "#test/support/workspaces.ts";

testInProcess(
  "[PB-15] an interrupted reconciliation is repeated within seconds, a completed one after minutes",
  async () => {
    const clock = new ManualClock();
    await using world = await openWorld({ clock });
    const { store, prebuilds } = getContext(world.server);
    const manifest = {
      provisioner: "echo",
      presets: [{ name: "Ready", parameters: {}, prebuilds: 1 }],
      resources: [{ name: "main" }],
    };
    const { id } = await makeTemplate(world.admin, JSON.stringify(manifest));
    const getNextDelay = async (): Promise<number> => {
      const timers = await store.all(listDueTimers({ now: 9e15 }));
      return (timers.find(({ actor_id }) => actor_id === id)?.due ?? Number.NaN) - clock.now();
    };
    const broken = new PrebuildKeeper({
      store,
      clock,
      workspaces: () => getContext(world.server).workspaces,
      automatic: { plan: () => Promise.reject(new Error("no plan")) },
      firstBuild: () => Promise.reject(new Error("as if the server had died here")),
    });
    const error = await broken.reconcile(id).catch((thrown: unknown) => thrown);
    expect(String(error)).toContain("as if the server had died here");
    expect(await getNextDelay()).toBe(10_000);
    // No prebuilt workspaces are wanted, so no build moves the timer.
    await world.admin.patch(`/api/v2/templates/${id}`, { deprecation_message: "old" });
    await prebuilds.reconcile(id);
    expect(await getNextDelay()).toBeNaN();
  },
);
