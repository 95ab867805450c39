// Jobs whose shard moves to another node.
import { expect, test } from "bun:test";
import { askWithRetries } from "#actors/job/report-retries.ts";
import type { Directory } from "#actors/runtime/directory.ts";
import { JobQueue } from "#actors/runtime/job-queue.ts";
import type { WorkspaceActor } from "#actors/workspace/actor.ts";
import { BuildRunner } from "#actors/workspace/build-runner.ts";
import { systemClock } from "#base/clock.ts";
import { CommitError } from "#db/engine/store.ts";

const SHARD = 7;

test("[CP-57] a build whose shard moves before it starts does not start on the old node", async () => {
  const jobs = new JobQueue(2);
  const requests: string[] = [];
  const workspaces = {
    // The message is delivered to the node that owns the workspace at that time.
    ask: async (id: string, message: string) => void requests.push(`${message} of ${id} anywhere`),
    askHere: async (id: string, message: string) => {
      requests.push(`${message} of ${id} here`);
      return "stale";
    },
  } as unknown as Directory<WorkspaceActor>;
  const runner = new BuildRunner({ clock: systemClock, jobs, workspaces: () => workspaces } as never);
  const submit = (name: string, shard: number): void =>
    runner.submit({ workspace_id: name, job_id: name, created_at: 0, tags: {}, urgency: "person", part: shard });
  submit("stays", SHARD + 1);
  submit("leaves", SHARD);
  await jobs.release((shard) => shard === SHARD);
  await jobs.release(() => true);
  expect(requests).toEqual(["startJob of stays here"]);
});

test("[CP-57] a job's reports are resent while its shard moves, to its current owner", async () => {
  const errors = [new CommitError("moved", "another node does this now"), new CommitError("overloaded", "busy")];
  const reply = await askWithRetries(systemClock, new AbortController().signal, async () => {
    const error = errors.shift();
    if (error) throw error;
    return "done";
  });
  expect(reply).toBe("done");
});
