// Resuming the work of shards that a node takes over.
import { expect, test } from "bun:test";
import { JobQueue } from "#actors/runtime/job-queue.ts";
import { ResumeIncompleteError, resumeAll } from "#actors/runtime/resume-work.ts";
import { AppError } from "#base/errors.ts";
import { CommitError } from "#db/engine/store.ts";

const toName = (item: number): string => `thing ${item}`;

test("[CP-54] work that cannot be resumed does not block other work; after a temporary error, the resume is incomplete", async () => {
  const resumed: number[] = [];
  const resumeWith = (errors: Readonly<Record<number, Error>>) =>
    resumeAll([1, 2, 3], toName, async (item) => {
      if (errors[item]) throw errors[item];
      resumed.push(item);
    });
  await resumeWith({ 2: new Error("it is broken for good") });
  expect(resumed.splice(0)).toEqual([1, 3]);
  for (const error of [new CommitError("unknown", "no answer"), new AppError("overloaded", "not now")]) {
    await expect(resumeWith({ 1: error })).rejects.toThrow(ResumeIncompleteError);
    expect(resumed.splice(0)).toEqual([2, 3]);
  }
});

test("[CP-54] a job starts again if its shard returns before its first run has ended", async () => {
  const queue = new JobQueue(1);
  const started: string[] = [];
  const finishCallbacks: (() => void)[] = [];
  const makeJob = (name: string) => ({
    id: "job",
    created_at: 0,
    urgency: "person" as const,
    part: 7,
    of: { kind: "build" as const, id: "workspace" },
    run: (): Promise<void> => {
      started.push(name);
      return new Promise((resolve) => finishCallbacks.push(resolve));
    },
  });
  queue.submit(makeJob("first"));
  expect(queue.has("job")).toBe(true);
  const released = queue.release((shard) => shard === 7);
  expect(queue.has("job")).toBe(false);
  queue.submit(makeJob("again"));
  expect([queue.has("job"), started]).toEqual([true, ["first"]]);
  finishCallbacks[0]?.();
  await released;
  expect(started).toEqual(["first", "again"]);
  finishCallbacks[1]?.();
});
