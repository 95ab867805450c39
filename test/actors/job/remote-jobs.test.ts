// Job queues of several nodes and the messages between them: the first node has the workers.
import { afterEach, expect, test } from "bun:test";
import { JobQueue, type QueuedJob } from "#actors/runtime/job-queue.ts";
import { type RemoteJobRequest, RemoteJobs } from "#actors/runtime/remote-jobs.ts";
import type { JobOwner } from "#actors/runtime/remote-queues.ts";
import { NotStartedError } from "#base/errors.ts";
import type { OtherNode, Shards } from "#base/shards.ts";
import { Workers } from "#src/provisioners/external/workers.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { until } from "#test/support/until.ts";

const nextTick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const TAGS = { provisioner: "docker", organization: "org", scope: "organization", owner: "" };
const LINK = { send: () => true, close: () => {} };
const makeWorkerInfo = (id: string, slots = 1) => ({
  id,
  name: id,
  key_id: "key",
  slots,
  organization_id: "org",
  provisioners: ["docker"],
  tags: {},
  places: {},
});

type JobRecord = { state: "pending" | "running" | "done"; part: number; job: Omit<QueuedJob, "run"> };

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanUp of cleanups.splice(0)) cleanUp();
});

/** Creates nodes by name, a record of each job, and the running jobs. Each job ends when the test calls its `end`. */
const createCluster = (names: readonly string[], slots = 1) => {
  const clock = new ManualClock();
  const jobRecords = new Map<string, JobRecord>();
  const runningJobs = new Map<string, { on: string; end: () => void }>();
  /** Jobs that ran twice at the same time. */
  const problems: string[] = [];
  const unreachable = new Set<string>();
  const nodeOfShard = new Map<number, string>();
  const nodes = new Map<
    string,
    { queue: JobQueue; workers: Workers; remote: RemoteJobs; submit: (id: string) => void }
  >();
  for (const name of names) {
    const toNode = (id: string): OtherNode => ({ id, address: id });
    const shards: Shards = {
      arrivals: 0,
      has: (shard) => nodeOfShard.get(shard) === name,
      get isFirst() {
        return nodeOfShard.get(0) === name;
      },
      nodeOf: (shard) => {
        const owner = nodeOfShard.get(shard);
        return owner === undefined || owner === name ? undefined : toNode(owner);
      },
    };
    const workers = new Workers(clock);
    const runJob = async (id: string, signal: AbortSignal): Promise<void> => {
      const record = jobRecords.get(id) as JobRecord;
      // Only the first node to report a start succeeds.
      if (record.state !== "pending") return;
      record.state = "running";
      if (runningJobs.has(id)) problems.push(`${id} runs twice`);
      await new Promise<void>((end) => {
        runningJobs.set(id, { on: name, end });
        signal.addEventListener("abort", () => end());
      });
      runningJobs.delete(id);
      if ((signal.reason as Error | undefined)?.name !== "ServerStopping") record.state = "done";
    };
    const submitJob = (job: Omit<QueuedJob, "run">): void => {
      if (!queue.isElsewhere(job.tags) && queue.has(job.id)) return;
      queue.submit({ ...job, run: (signal) => runJob(job.id, signal) });
    };
    const remote: RemoteJobs = new RemoteJobs({
      shards,
      clock,
      queue: () => queue,
      async ask(node, question: RemoteJobRequest) {
        if (unreachable.has(name) || unreachable.has(node.id)) throw new NotStartedError("It cannot be reached.");
        // Only data is sent between nodes.
        return structuredClone(await nodes.get(node.id)?.remote.answer(JSON.parse(JSON.stringify(question))));
      },
      submit: submitJob,
      async requeue(_of: JobOwner, id) {
        const record = jobRecords.get(id);
        if (!record || record.state === "done" || !shards.has(record.part)) return;
        record.state = "pending";
        submitJob(record.job);
      },
    });
    const queue: JobQueue = new JobQueue(slots, workers, "built-in", remote);
    const submit = (id: string): void => submitJob((jobRecords.get(id) as JobRecord).job);
    nodes.set(name, { queue, workers, remote, submit });
    cleanups.push(() => {
      remote.stop();
      workers.stop();
    });
  }
  const node = (name: string) => nodes.get(name) as NonNullable<ReturnType<typeof nodes.get>>;
  return {
    clock,
    jobRecords,
    runningJobs,
    problems,
    unreachable,
    nodeOfShard,
    node,
    /** Submits a job of this shard at the node that has it. */
    submit(id: string, shard: number, created_at: number, tags: Record<string, string> | undefined = TAGS) {
      const job = { id, created_at, urgency: "person", tags, part: shard, of: { kind: "build", id } } as const;
      jobRecords.set(id, { state: "pending", part: shard, job });
      node(nodeOfShard.get(shard) as string).submit(id);
    },
    start() {
      for (const { remote } of nodes.values()) remote.start();
    },
    /** Advances the clock by half a second at a time until this holds. */
    async advanceUntil(holds: () => boolean) {
      await until(async () => {
        clock.advance(500);
        await nextTick();
        return holds();
      });
    },
  };
};

test("[CP-60] a job runs on a worker of the first node, whichever node owns it, and then leaves the queue", async () => {
  const { nodeOfShard, node, submit, start, runningJobs, jobRecords, advanceUntil } = createCluster(["a", "b"]);
  nodeOfShard.set(0, "a").set(1, "b");
  start();
  submit("one", 1, 1);
  expect(node("b").queue.has("one")).toBe(true);
  node("a").workers.connect(makeWorkerInfo("w"), LINK);
  await advanceUntil(() => runningJobs.get("one")?.on === "a");
  expect(node("a").queue.hasLocally("one")).toBe(true);
  runningJobs.get("one")?.end();
  await advanceUntil(() => !node("b").queue.has("one"));
  expect(jobRecords.get("one")?.state).toBe("done");
  // Jobs for the built-in worker stay on their node.
  submit("own", 1, 2, {});
  expect(runningJobs.get("own")?.on).toBe("b");
});

test("[CP-61] every node lists the workers, and a job's queue position counts the jobs of all nodes that wait for the same workers", async () => {
  const { nodeOfShard, node, submit, start, runningJobs, advanceUntil } = createCluster(["a", "b", "c"]);
  nodeOfShard.set(0, "a").set(1, "b").set(2, "c");
  start();
  expect(node("b").queue.workersFor(TAGS)).toEqual([]);
  const before = node("b").queue.workersVersion;
  node("a").workers.connect(makeWorkerInfo("w"), LINK);
  await advanceUntil(() => node("b").queue.workersFor(TAGS).length > 0 && node("c").queue.workersFor(TAGS).length > 0);
  expect(node("b").queue.workersFor(TAGS)).toEqual(["w"]);
  expect(node("b").queue.workersVersion).toBeGreaterThan(before);
  expect(node("b").queue.workersFor({ ...TAGS, region: "eu" })).toEqual([]);
  submit("runs", 1, 1);
  await advanceUntil(() => runningJobs.has("runs"));
  submit("third", 2, 9);
  submit("second", 1, 5);
  submit("first", 0, 3);
  submit("own", 1, 4, {});
  submit("waits", 1, 6, {});
  const listPositions = (id: string) => ["a", "b", "c"].map((name) => node(name).queue.position(id));
  await advanceUntil(() => listPositions("third").every((node) => node.queue_position === 3));
  await advanceUntil(() => listPositions("waits").every((node) => node.queue_position === 1));
  for (const [index, id] of ["first", "second", "third"].entries())
    expect(listPositions(id)).toEqual(Array(3).fill({ queue_position: index + 1, queue_size: 3 }));
  expect(listPositions("waits")).toEqual(Array(3).fill({ queue_position: 1, queue_size: 1 }));
});

test("[CP-62] a cancellation reaches a job on another node, even if the connection was down in the meantime", async () => {
  const { nodeOfShard, node, submit, start, runningJobs, jobRecords, advanceUntil, unreachable } = createCluster([
    "a",
    "b",
  ]);
  nodeOfShard.set(0, "a").set(1, "b");
  start();
  node("a").workers.connect(makeWorkerInfo("w"), LINK);
  submit("runs", 1, 1);
  await advanceUntil(() => runningJobs.has("runs"));
  unreachable.add("b");
  node("b").queue.cancel("runs", "no longer wanted");
  await advanceUntil(() => true);
  expect(runningJobs.has("runs")).toBe(true);
  unreachable.clear();
  await advanceUntil(() => !runningJobs.has("runs"));
  expect(jobRecords.get("runs")?.state).toBe("done");
});

test("[CP-63] a broken connection starts no job twice", async () => {
  const { nodeOfShard, node, submit, start, runningJobs, problems, advanceUntil, unreachable } = createCluster([
    "a",
    "b",
  ]);
  nodeOfShard.set(0, "a").set(1, "b");
  start();
  node("a").workers.connect(makeWorkerInfo("w", 4), LINK);
  submit("runs", 1, 1);
  await advanceUntil(() => runningJobs.has("runs"));
  unreachable.add("b");
  // The message never arrives, which is detected when the link is restored.
  submit("lost", 1, 2);
  for (let i = 0; i < 4; i++) await advanceUntil(() => true);
  expect(runningJobs.has("lost")).toBe(false);
  unreachable.clear();
  await advanceUntil(() => runningJobs.has("lost"));
  expect([...runningJobs.keys()]).toEqual(["runs", "lost"]);
  expect(problems).toEqual([]);
});

test("[CP-63] when the first node dies, its workers' jobs start again on the workers of the next first node", async () => {
  const { nodeOfShard, node, submit, start, runningJobs, jobRecords, problems, advanceUntil, unreachable } =
    createCluster(["a", "b", "c"]);
  nodeOfShard.set(0, "a").set(1, "b").set(2, "c");
  start();
  node("a").workers.connect(makeWorkerInfo("w", 4), LINK);
  submit("of-b", 1, 1);
  submit("of-c", 2, 2);
  await advanceUntil(() => runningJobs.size === 2);
  // The node dies with its workers' jobs.
  unreachable.add("a");
  node("a").remote.stop();
  runningJobs.clear();
  nodeOfShard.delete(0);
  for (let i = 0; i < 4; i++) await advanceUntil(() => true);
  expect(jobRecords.get("of-b")?.state).toBe("running");
  nodeOfShard.set(0, "b");
  node("b").workers.connect(makeWorkerInfo("w", 4), LINK);
  await advanceUntil(() => runningJobs.get("of-b")?.on === "b" && runningJobs.get("of-c")?.on === "b");
  expect(problems).toEqual([]);
});

test("[CP-63] a first node that hands over its role ends its workers' jobs before any job starts elsewhere", async () => {
  const { nodeOfShard, node, submit, start, runningJobs, problems, advanceUntil } = createCluster(["a", "b"]);
  nodeOfShard.set(0, "a").set(1, "b").set(2, "a");
  start();
  node("a").workers.connect(makeWorkerInfo("w", 2), LINK);
  submit("of-b", 1, 1);
  submit("of-a", 2, 2);
  submit("waits", 2, 3);
  await advanceUntil(() => runningJobs.size === 2);
  nodeOfShard.delete(0);
  await node("a").queue.release((shard) => shard === 0);
  expect(runningJobs.size).toBe(0);
  for (let i = 0; i < 4; i++) await advanceUntil(() => true);
  expect(runningJobs.size).toBe(0);
  nodeOfShard.set(0, "b");
  node("b").workers.connect(makeWorkerInfo("w", 4), LINK);
  await advanceUntil(() => ["of-a", "of-b", "waits"].every((id) => runningJobs.get(id)?.on === "b"));
  expect(problems).toEqual([]);
});

test("[CP-63] when a shard moves, its running jobs stay on their workers, and the new owner gets their results", async () => {
  const { nodeOfShard, node, submit, start, runningJobs, jobRecords, problems, advanceUntil } = createCluster([
    "a",
    "b",
    "c",
  ]);
  nodeOfShard.set(0, "a").set(1, "b").set(2, "c");
  start();
  node("a").workers.connect(makeWorkerInfo("w", 4), LINK);
  submit("moves", 1, 1);
  await advanceUntil(() => runningJobs.has("moves"));
  nodeOfShard.delete(1);
  await node("b").queue.release((shard) => shard === 1);
  expect(node("b").queue.has("moves")).toBe(false);
  nodeOfShard.set(1, "c");
  expect(node("c").queue.ensureQueued((jobRecords.get("moves") as JobRecord).job)).toBe(true);
  for (let i = 0; i < 4; i++) await advanceUntil(() => true);
  expect(runningJobs.get("moves")?.on).toBe("a");
  runningJobs.get("moves")?.end();
  await advanceUntil(() => !node("c").queue.has("moves"));
  expect([jobRecords.get("moves")?.state, problems]).toEqual(["done", []]);
});
