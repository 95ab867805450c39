import { expect, test } from "bun:test";
import { JobQueue } from "#actors/runtime/job-queue.ts";
import { NotAllResumed, resumeAll } from "#actors/runtime/take-up.ts";
import { AppError } from "#base/errors.ts";
import { CommitError } from "#db/engine/store.ts";

const NAME = (one: number): string => `thing ${one}`;

test("[CP-54] work that cannot be resumed blocks no other, and is redirected to where it may be later", async () => {
  const taken: number[] = [];
  const take = (errors: Readonly<Record<number, Error>>) =>
    resumeAll([1, 2, 3], NAME, async (one) => {
      if (errors[one]) throw errors[one];
      taken.push(one);
    });
  await take({ 2: new Error("it is broken for good") });
  expect(taken.splice(0)).toEqual([1, 3]);
  for (const error of [new CommitError("unknown", "no answer"), new AppError("overloaded", "not now")]) {
    await expect(take({ 1: error })).rejects.toThrow(NotAllResumed);
    expect(taken.splice(0)).toEqual([2, 3]);
  }
});

test("[CP-54] a job whose shard returns while it still ends is started again", async () => {
  const queue = new JobQueue(1);
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const job = (name: string) => ({
    id: "job",
    created_at: 0,
    urgency: "person" as const,
    part: 7,
    of: { kind: "build" as const, id: "workspace" },
    run: (): Promise<void> => {
      begun.push(name);
      return new Promise((resolve) => ends.push(resolve));
    },
  });
  queue.submit(job("first"));
  expect(queue.holds("job")).toBe(true);
  const left = queue.leave((part) => part === 7);
  expect(queue.holds("job")).toBe(false);
  queue.submit(job("again"));
  expect([queue.holds("job"), begun]).toEqual([true, ["first"]]);
  ends[0]?.();
  await left;
  expect(begun).toEqual(["first", "again"]);
  ends[1]?.();
});
