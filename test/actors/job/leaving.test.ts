import { expect, test } from "bun:test";
import { askPatiently } from "#actors/job/patience.ts";
import type { Directory } from "#actors/runtime/directory.ts";
import { JobQueue } from "#actors/runtime/job-queue.ts";
import type { WorkspaceActor } from "#actors/workspace/actor.ts";
import { BuildRunner } from "#actors/workspace/build-runner.ts";
import { systemClock } from "#base/clock.ts";
import { CommitError } from "#db/engine/store.ts";

const PART = 7;

test("[CP-57] a build whose part leaves before it begins is not begun at the node that gets it", async () => {
  const jobs = new JobQueue(2);
  const asked: string[] = [];
  const workspaces = {
    // Wherever the workspace is by then.
    ask: async (id: string, message: string) => void asked.push(`${message} of ${id} anywhere`),
    askHere: async (id: string, message: string) => {
      asked.push(`${message} of ${id} here`);
      return "stale";
    },
  } as unknown as Directory<WorkspaceActor>;
  const runner = new BuildRunner({ clock: systemClock, jobs, workspaces: () => workspaces } as never);
  const submit = (name: string, part: number): void =>
    runner.submit({ workspace_id: name, job_id: name, created_at: 0, tags: {}, urgency: "person", part });
  submit("stays", PART + 1);
  submit("leaves", PART);
  await jobs.leave((part) => part === PART);
  await jobs.leave(() => true);
  expect(asked).toEqual(["startJob of stays here"]);
});

test("[CP-57] what comes of a job is said again while its part moves, to anyone who has it then", async () => {
  const refused = [new CommitError("moved", "another node does this now"), new CommitError("overloaded", "busy")];
  const asked = await askPatiently(systemClock, new AbortController().signal, async () => {
    const error = refused.shift();
    if (error) throw error;
    return "done";
  });
  expect(asked).toBe("done");
});
