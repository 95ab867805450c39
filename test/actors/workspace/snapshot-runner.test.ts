// Snapshot work outside of any mailbox: its order, and work that fails or belongs to another node by now.
import { expect, test } from "bun:test";
import type { SubmittedSnapshot } from "#actors/workspace/effects.ts";
import { SnapshotRunner } from "#actors/workspace/snapshot-runner.ts";
import type { CaptureResult, SnapshotRef } from "#src/provisioners/homes.ts";
import { ProvisionError } from "#src/provisioners/provisioner.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { until } from "#test/support/until.ts";

const createSubmitted = (workspace_id: string, snapshot_id: string, shard = 0): SubmittedSnapshot => ({
  workspace_id,
  owner_id: `owner of ${workspace_id}`,
  snapshot_id,
  provisioner: "docker",
  home_backup_id: null,
  part: shard,
});

/** Returns a runner whose copies wait for a gate, and a record of its actions. */
const openRunner = () => {
  const clock = new ManualClock();
  const seen: string[] = [];
  const gates = new Map<string, PromiseWithResolvers<CaptureResult>>();
  let isUnreachable = false;
  const homes = {
    capture: ({ snapshot_id }: SnapshotRef, signal: AbortSignal): Promise<CaptureResult> => {
      seen.push(`capture ${snapshot_id}`);
      const gate = Promise.withResolvers<CaptureResult>();
      gates.set(snapshot_id, gate);
      signal.addEventListener("abort", () => gate.reject(signal.reason));
      return gate.promise;
    },
    discard: async ({ snapshot_id }: SnapshotRef): Promise<void> => {
      if (isUnreachable) throw new ProvisionError("the engine does not answer");
      seen.push(`discard ${snapshot_id}`);
    },
  };
  const workspaces = {
    ask: async (_: string, type: string, { snapshot_id }: { snapshot_id: string }) =>
      void seen.push(`${type} ${snapshot_id}`),
  };
  const runner = new SnapshotRunner({
    clock,
    provisioners: new Map([["docker", { homes }]]) as never,
    workspaces: () => workspaces as never,
    fetch: () => Promise.reject(new Error("there are no backups here")),
    module: { load: () => Promise.reject(new Error("there is no module")), loadMade: async () => undefined },
  });
  const saw = (line: string) => until(() => seen.includes(line), { what: line });
  return {
    clock,
    runner,
    seen,
    saw,
    finish: (snapshot_id: string) => gates.get(snapshot_id)?.resolve({ method: "volume", bytes: 1 }),
    fail: (snapshot_id: string, error: Error) => gates.get(snapshot_id)?.reject(error),
    reach: (isReachable: boolean) => {
      isUnreachable = !isReachable;
    },
  };
};

test("[SN-21] removes a snapshot of a workspace before or after another is created, never while the workspace is paused for it", async () => {
  const { runner, seen, saw, finish } = openRunner();
  runner.capture(createSubmitted("w", "new"));
  runner.discard(createSubmitted("w", "old"));
  runner.discard(createSubmitted("other", "of-other"));
  await saw("snapshotDropped of-other");
  expect(seen).toEqual(["capture new", "discard of-other", "snapshotDropped of-other"]);
  finish("new");
  await saw("snapshotDropped old");
  expect(seen.slice(3)).toEqual(["snapshotCaptured new", "discard old", "snapshotDropped old"]);
  await runner.stop();
});

test("[SN-20] retries removing a failed copy's leftovers and deleted snapshots until it succeeds", async () => {
  const { clock, runner, seen, saw, fail, reach } = openRunner();
  reach(false);
  runner.capture(createSubmitted("w", "new"));
  runner.discard(createSubmitted("other", "old"));
  fail("new", new ProvisionError("the engine does not answer"));
  await saw("snapshotFailed new");
  clock.advance(60_000);
  expect(seen).toEqual(["capture new", "snapshotFailed new"]);
  reach(true);
  await until(() => {
    clock.advance(60_000);
    return seen.length === 5;
  });
  // The failed one stays in the list with its reason.
  expect(seen.slice(2).toSorted()).toEqual(["discard new", "discard old", "snapshotDropped old"]);
  await runner.stop();
});

test("[SN-22] a node that hands over a workspace stops its snapshot work without reporting it", async () => {
  const { clock, runner, seen, reach } = openRunner();
  reach(false);
  runner.capture(createSubmitted("w", "leaving", 1));
  runner.discard(createSubmitted("w", "waiting", 1));
  runner.capture(createSubmitted("staying", "here", 2));
  await runner.release((part) => part === 1);
  reach(true);
  clock.advance(60_000);
  expect(seen).toEqual(["capture leaving", "capture here"]);
  // The shard returns, and so does the work.
  runner.capture(createSubmitted("w", "leaving", 1));
  expect(seen.slice(2)).toEqual(["capture leaving"]);
  await runner.stop();
});
