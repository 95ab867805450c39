// The job queue and the reports of a running job.
import { expect, test } from "bun:test";
import { appendLogs } from "#actors/job/logs.ts";
import { type JobOutput, JobReport } from "#actors/job/report.ts";
import { JobQueue, type QueuedJob, ServerStopping } from "#actors/runtime/job-queue.ts";
import type { Urgency } from "#actors/runtime/remote-queues.ts";
import { systemClock } from "#base/clock.ts";
import { until } from "#test/support/until.ts";

const makeJob = (id: string, created_at: number, run: QueuedJob["run"], urgency: Urgency = "person"): QueuedJob => ({
  id,
  created_at,
  urgency,
  run,
});

test("[JB-1] as many jobs run as there are slots; people's jobs run first, then the oldest, regardless of the order of submission", async () => {
  const queue = new JobQueue(1);
  const order: string[] = [];
  const gate = Promise.withResolvers<void>();
  const record = (id: string) => async () => void order.push(id);
  queue.submit(makeJob("first", 0, () => gate.promise));
  queue.submit(makeJob("spare", 1, record("spare"), "background"));
  queue.submit(makeJob("young", 9, record("young")));
  queue.submit(makeJob("old", 5, record("old")));
  expect(queue.position("old")).toEqual({ queue_position: 1, queue_size: 3 });
  expect(queue.position("spare")).toEqual({ queue_position: 3, queue_size: 3 });
  expect(queue.position("first").queue_position).toBe(0);
  const done = Promise.withResolvers<void>();
  queue.submit(makeJob("last", 99, async () => done.resolve(), "background"));
  gate.resolve();
  await done.promise;
  expect(order).toEqual(["old", "young", "spare"]);
});

test("[JB-13] a job that yields its slot continues, and exactly one waiting job starts", async () => {
  const queue = new JobQueue(1);
  const gate = Promise.withResolvers<void>();
  const started: string[] = [];
  queue.submit(
    makeJob("image", 0, async (_signal, _worker, yieldSlot) => {
      yieldSlot();
      yieldSlot();
      await gate.promise;
    }),
  );
  const createHeldJob = (id: string) => async () => {
    started.push(id);
    await gate.promise;
  };
  queue.submit(makeJob("next", 1, createHeldJob("next")));
  queue.submit(makeJob("last", 2, createHeldJob("last")));
  expect(started).toEqual(["next"]);
  expect(queue.position("last").queue_position).toBe(1);
  gate.resolve();
  await until(() => started.length === 2 && !queue.has("last"));
});

test("[JB-2] cancelling removes a waiting job from the queue and aborts a running one", async () => {
  const queue = new JobQueue(1);
  const aborted = Promise.withResolvers<unknown>();
  const waitForAbort = async (signal: AbortSignal) => {
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    aborted.resolve(signal.reason);
  };
  queue.submit(makeJob("running", 0, waitForAbort));
  queue.submit(makeJob("waiting", 1, async () => aborted.reject(new Error("it ran"))));
  queue.cancel("waiting", "no longer wanted");
  expect(queue.has("waiting")).toBe(false);
  queue.cancel("running", "no longer wanted");
  expect(String(await aborted.promise)).toContain("no longer wanted");
});

test("[JB-3] a stopping queue starts no more jobs and gives running jobs the reason", async () => {
  const queue = new JobQueue(1);
  let reason: unknown;
  let ran = false;
  queue.submit(
    makeJob("running", 0, async (signal) => {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      reason = signal.reason;
    }),
  );
  queue.submit(
    makeJob("waiting", 1, async () => {
      ran = true;
    }),
  );
  await queue.stop();
  expect(reason).toBeInstanceOf(ServerStopping);
  expect(ran).toBe(false);
});

test("[JB-10] a stored line has no NUL, no invalid characters and a maximum length", () => {
  const state = { key: 1, logs_length: 0, logs_overflowed: false } as Parameters<typeof appendLogs>[0];
  const makeLine = (output: string) => ({
    created_at: 0,
    source: "provisioner" as const,
    level: "info" as const,
    stage: "s",
    output,
  });
  const rows = appendLogs(state, [makeLine("a\0b\uD800"), makeLine("x".repeat(100_000))], 5, 0)?.rows ?? [];
  expect(rows[0]?.output).toBe("a\uFFFDb\uFFFD");
  expect(rows[1]?.output).toHaveLength(65_536);
  expect(rows.map(({ id }) => id)).toEqual([5, 6]);
});

test("[JB-9] blank lines count, so that a million of them neither fill the memory nor the database", async () => {
  const messages: JobOutput[] = [];
  const report = new JobReport(systemClock, async (message) => void messages.push(message));
  report.log("info", "Stage", "\n".repeat(1_000_000));
  await report.whenSettled();
  expect(messages.flatMap(({ logs }) => logs)).toHaveLength(1_048_576 / 16 + 1);
});

test("[JB-11] a job's output in one turn of the event loop is one message, which is resent while its owner is overloaded", async () => {
  const messages: JobOutput[] = [];
  let refusals = 1;
  const report = new JobReport(systemClock, async (message) => {
    if (refusals-- > 0) throw new Error("overloaded");
    messages.push(message);
  });
  report.log("info", "Stage", "one\ntwo");
  report.log("warn", "Stage", "three");
  await report.whenSettled();
  expect(messages).toHaveLength(1);
  expect(messages[0]?.logs.map(({ output, level }) => [output, level])).toEqual([
    ["one", "info"],
    ["two", "info"],
    ["three", "warn"],
  ]);
});
