// Snapshot work outside of any mailbox: its order, failures, and work that has moved to another node.
import { expect, test } from "bun:test";
import type { SubmittedSnapshot } from "#actors/workspace/effects.ts";
import { SnapshotRunner } from "#actors/workspace/snapshot-runner.ts";
import type { CaptureResult, SnapshotRef } from "#src/provisioners/homes.ts";
import { ProvisionError } from "#src/provisioners/provisioner.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { until } from "#test/support/until.ts";

const createSnapshotRequest = (workspace_id: string, snapshot_id: string, shard = 0): SubmittedSnapshot => ({
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
  const lines: string[] = [];
  const gates = new Map<string, PromiseWithResolvers<CaptureResult>>();
  let isUnreachable = false;
  const homes = {
    capture: ({ snapshot_id }: SnapshotRef, signal: AbortSignal): Promise<CaptureResult> => {
      lines.push(`capture ${snapshot_id}`);
      const gate = Promise.withResolvers<CaptureResult>();
      gates.set(snapshot_id, gate);
      signal.addEventListener("abort", () => gate.reject(signal.reason));
      return gate.promise;
    },
    discard: async ({ snapshot_id }: SnapshotRef): Promise<void> => {
      if (isUnreachable) throw new ProvisionError("the engine does not answer");
      lines.push(`discard ${snapshot_id}`);
    },
  };
  const workspaces = {
    ask: async (_: string, type: string, { snapshot_id }: { snapshot_id: string }) =>
      void lines.push(`${type} ${snapshot_id}`),
  };
  const runner = new SnapshotRunner({
    clock,
    provisioners: new Map([["docker", { homes }]]) as never,
    workspaces: () => workspaces as never,
    fetch: () => Promise.reject(new Error("there are no backups here")),
    module: { load: () => Promise.reject(new Error("there is no module")), loadMade: async () => undefined },
  });
  const waitForLine = (line: string) => until(() => lines.includes(line), { what: line });
  return {
    clock,
    runner,
    lines,
    waitForLine,
    finish: (snapshot_id: string) => gates.get(snapshot_id)?.resolve({ method: "volume", bytes: 1 }),
    fail: (snapshot_id: string, error: Error) => gates.get(snapshot_id)?.reject(error),
    setReachable: (isReachable: boolean) => {
      isUnreachable = !isReachable;
    },
  };
};

test("[SN-21] removes a snapshot before or after the workspace's next capture, never during it", async () => {
  const { runner, lines, waitForLine, finish } = openRunner();
  runner.capture(createSnapshotRequest("w", "new"));
  runner.discard(createSnapshotRequest("w", "old"));
  runner.discard(createSnapshotRequest("other", "of-other"));
  await waitForLine("snapshotDropped of-other");
  expect(lines).toEqual(["capture new", "discard of-other", "snapshotDropped of-other"]);
  finish("new");
  await waitForLine("snapshotDropped old");
  expect(lines.slice(3)).toEqual(["snapshotCaptured new", "discard old", "snapshotDropped old"]);
  await runner.stop();
});

test("[SN-20] retries removing a failed copy's leftovers and deleted snapshots until it succeeds", async () => {
  const { clock, runner, lines, waitForLine, fail, setReachable } = openRunner();
  setReachable(false);
  runner.capture(createSnapshotRequest("w", "new"));
  runner.discard(createSnapshotRequest("other", "old"));
  fail("new", new ProvisionError("the engine does not answer"));
  await waitForLine("snapshotFailed new");
  clock.advance(60_000);
  expect(lines).toEqual(["capture new", "snapshotFailed new"]);
  setReachable(true);
  await until(() => {
    clock.advance(60_000);
    return lines.length === 5;
  });
  // The failed snapshot stays in the list with its reason.
  expect(lines.slice(2).toSorted()).toEqual(["discard new", "discard old", "snapshotDropped old"]);
  await runner.stop();
});

test("[SN-22] a node that hands over a workspace stops its snapshot work without reporting it", async () => {
  const { clock, runner, lines, setReachable } = openRunner();
  setReachable(false);
  runner.capture(createSnapshotRequest("w", "leaving", 1));
  runner.discard(createSnapshotRequest("w", "waiting", 1));
  runner.capture(createSnapshotRequest("staying", "here", 2));
  await runner.release((part) => part === 1);
  setReachable(true);
  clock.advance(60_000);
  expect(lines).toEqual(["capture leaving", "capture here"]);
  // The shard returns, and so does the work.
  runner.capture(createSnapshotRequest("w", "leaving", 1));
  expect(lines.slice(2)).toEqual(["capture leaving"]);
  await runner.stop();
});
