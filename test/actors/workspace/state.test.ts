// The workspace's transitions against a model based only on the rules: random commands in random order, early and late, for the current job
// and for old ones. A failure prints the seed to reproduce it.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { CANCEL_TIMEOUT_MS, PENDING_TIMEOUT_MS, SILENCE_TIMEOUT_MS } from "#actors/job/state.ts";
import type { Change, NewBuild, WorkspaceCommand, WorkspaceState } from "#actors/workspace/decision.ts";
import { buildWorkspaceNotices } from "#actors/workspace/notices.ts";
import { create, transition } from "#actors/workspace/state.ts";
import { NIL_UUID } from "#base/ids.ts";
import { isActive, type JobStatus, toJobStatus } from "#schema/workspaces/job.ts";
import { buildWith, NEW_WORKSPACE } from "./schedule-state.ts";

const START = Date.UTC(2030, 0, 1);

const newBuild = (n: number, kind: NewBuild["transition"]): NewBuild => buildWith(n, { transition: kind });

const createFresh = (ttl_ms: number | null = null): Change =>
  create(
    { ...NEW_WORKSPACE, created_at: START, updated_at: START, last_used_at: START, ttl_ms },
    newBuild(1, "start"),
    START,
  );

/** Late: from an older job, or from an earlier attempt of the current one. */
type Step = { kind: string; transition: NewBuild["transition"]; late: "no" | "job" | "run"; wait: number };

const stepArbitrary: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom("build", "start", "say", "touch", "cancel", "complete", "fail", "requeue", "reap"),
  transition: fc.constantFrom("start", "stop", "delete"),
  late: fc.constantFrom("no", "no", "job", "run"),
  wait: fc.constantFrom(0, 1_000, SILENCE_TIMEOUT_MS, CANCEL_TIMEOUT_MS, PENDING_TIMEOUT_MS),
});

const toCommand = ({ kind, transition: build, late }: Step, state: WorkspaceState, now: number): WorkspaceCommand => {
  const job_id = late === "job" ? "job-0" : state.job.id;
  const run = { job_id, ...(late === "run" ? { attempt: getLastAttempt(state) } : getRunningAttempt(state)) };
  const n = state.build.build_number + 1;
  const log = { created_at: now, source: "provisioner", level: "info", stage: "", output: "x" } as const;
  switch (kind) {
    case "build":
      return { type: "build", now, build: newBuild(n, build) };
    case "start":
      return {
        type: "start",
        now,
        job_id,
        worker: { id: NIL_UUID, name: "w" },
        rows: [],
        agent_ids: [`agent-${n}`],
        daily_cost: 1,
      };
    case "say":
      return { type: "say", now, ...run, first_id: 1, logs: [log], timings: [] };
    case "complete":
      return { type: "complete", now, ...run, state: `left by ${n}` };
    case "fail":
      return { type: "fail", now, ...run, error: "broken", error_code: "" };
    case "touch":
      return { type: "touch", now, ...run };
    case "reap":
      return { type: "reap", now, first_id: 1 };
    default:
      return { type: kind as "cancel" | "requeue", now, job_id };
  }
};

/** Returns the running attempt, or an empty object if the job is not running. */
const getRunningAttempt = ({ job }: WorkspaceState): { attempt?: number } =>
  job.started_at === null ? {} : { attempt: job.attempts };
/** Returns the number of the last attempt that has ended. */
const getLastAttempt = ({ job }: WorkspaceState): number => (job.started_at === null ? job.attempts : job.attempts - 1);

/** Allowed job transitions; the table of facts/platform 2.1. */
const ALLOWED_TRANSITIONS: Record<JobStatus, readonly JobStatus[]> = {
  pending: ["pending", "running", "canceled", "failed"],
  running: ["running", "succeeded", "failed", "canceling", "pending"],
  canceling: ["canceling", "canceled", "failed"],
  succeeded: ["succeeded"],
  canceled: ["canceled"],
  failed: ["failed"],
  unknown: [],
};

test("[WK-7] [JB-4] in any order of events, one build is active, numbers have no gaps, and late reports change nothing", () => {
  fc.assert(
    fc.property(fc.array(stepArbitrary, { maxLength: 60 }), (steps) => {
      let { state } = createFresh();
      let now = START;
      for (const step of steps) {
        now += step.wait;
        const command = toCommand(step, state, now);
        const decision = transition(state, command);
        if ("job_id" in command && command.job_id === "job-0") expect(decision.kind).toBe("stale");
        if ("attempt" in command && step.late === "run") expect(decision.kind).toBe("stale");
        if (decision.kind !== "change") {
          if (command.type === "build") expect(isActive(state.job) || state.workspace.deleted).toBe(true);
          continue;
        }
        const next = decision.state;
        if (command.type === "build") {
          expect(isActive(state.job)).toBe(false);
          expect(next.build.build_number).toBe(state.build.build_number + 1);
          expect(toJobStatus(next.job)).toBe("pending");
          const goneAgents = decision.events
            .filter((event) => event.topic === "agent_gone")
            .map((event) => event.agent_id);
          // Stop and delete builds invalidate the agents' tokens at their end, so that stop scripts can still report.
          const isEnding = next.build.transition !== "start";
          expect(goneAgents).toEqual(isEnding ? [] : [...state.agent_ids]);
          if (isEnding) expect(next.agent_ids).toEqual(state.agent_ids);
        } else {
          expect(ALLOWED_TRANSITIONS[toJobStatus(state.job)]).toContain(toJobStatus(next.job));
          expect(next.build.build_number).toBe(state.build.build_number);
        }
        const announced = decision.events.filter((event) => event.topic === "workspace");
        expect(next.workspace.version - state.workspace.version).toBe(announced.length);
        if (toJobStatus(next.job) !== toJobStatus(state.job)) expect(announced).toHaveLength(1);
        const ended = isActive(state.job) && !isActive(next.job) && command.type !== "build";
        expect(decision.events.some((event) => event.topic === "job" && event.done)).toBe(ended);
        if (ended && next.build.transition !== "start") {
          const goneAgents = decision.events
            .filter((event) => event.topic === "agent_gone")
            .map((event) => event.agent_id);
          expect([goneAgents, next.agent_ids]).toEqual([[...state.agent_ids], []]);
        }
        const removed = next.build.transition === "delete" && toJobStatus(next.job) === "succeeded";
        expect(next.workspace.deleted).toBe(removed);
        state = next;
      }
    }),
    { numRuns: 500 },
  );
});

const applyCommand = (state: WorkspaceState, command: WorkspaceCommand): Change => {
  const decision = transition(state, command);
  if (decision.kind !== "change") throw new Error(`${command.type} returned ${decision.kind}`);
  return decision;
};

const createStarted = (ttl?: number): WorkspaceState =>
  applyCommand(
    createFresh(ttl).state,
    toCommand({ kind: "start", transition: "start", late: "no", wait: 0 }, createFresh().state, START),
  ).state;

test("[JB-5] a cancellation wins over a success that is reported after it", () => {
  const canceling = applyCommand(createStarted(), { type: "cancel", now: START + 1, job_id: "job-1" }).state;
  const done = applyCommand(canceling, { type: "complete", now: START + 2, job_id: "job-1", state: null }).state;
  expect(toJobStatus(done.job)).toBe("canceled");
  expect(done.build.deadline).toBeNull();
});

test("[JB-6] fails a pending job after 30 minutes with a duration of zero, a silent job after 5, and a canceling job after 3", () => {
  const reap = (state: WorkspaceState, now: number) => transition(state, { type: "reap", now, first_id: 1 });
  const statusAt = (state: WorkspaceState, ms: number): JobStatus => {
    const decision = reap(state, START + ms);
    return decision.kind === "change" ? toJobStatus(decision.state.job) : "unknown";
  };
  const pending = createFresh().state;
  expect(statusAt(pending, PENDING_TIMEOUT_MS - 1)).toBe("pending");
  expect(statusAt(pending, PENDING_TIMEOUT_MS)).toBe("failed");
  const reaped = applyCommand(pending, { type: "reap", now: START + PENDING_TIMEOUT_MS, first_id: 7 });
  expect(reaped.state.job.started_at).toBe(reaped.state.job.completed_at);
  const lines = reaped.events.flatMap((event) => (event.topic === "job" ? event.logs : []));
  expect(lines).toHaveLength(5);
  expect([lines[0]?.output, lines[4]?.output]).toEqual(["", ""]);
  expect([statusAt(createStarted(), SILENCE_TIMEOUT_MS - 1), statusAt(createStarted(), SILENCE_TIMEOUT_MS)]).toEqual([
    "running",
    "failed",
  ]);
  const canceling = applyCommand(createStarted(), { type: "cancel", now: START, job_id: "job-1" }).state;
  expect([statusAt(canceling, CANCEL_TIMEOUT_MS - 1), statusAt(canceling, CANCEL_TIMEOUT_MS)]).toEqual([
    "canceling",
    "failed",
  ]);
});

test("[JB-7] a job that was interrupted by two server stops is not started a third time", () => {
  const requeue = { type: "requeue", now: START + 5, job_id: "job-1" } as const;
  const requeued = applyCommand(createStarted(), requeue);
  expect(toJobStatus(requeued.state.job)).toBe("pending");
  expect(requeued.effects).toEqual([{ do: "submit", job_id: "job-1" }]);
  const start = toCommand({ kind: "start", transition: "start", late: "no", wait: 0 }, requeued.state, START);
  const restarted = applyCommand(requeued.state, start).state;
  const stopped = applyCommand(restarted, requeue);
  expect(toJobStatus(stopped.state.job)).toBe("failed");
  expect(stopped.effects).toEqual([]);
  expect(stopped.state.job.error).toContain("stopped");
});

test("[JB-7] [JB-12] a job that moves between nodes, as in a rolling upgrade, is started at most six times", () => {
  const requeue = { type: "requeue", now: START + 5, job_id: "job-1", moved: true } as const;
  let state = createStarted();
  for (let started = 1; started < 6; started++) {
    state = applyCommand(state, requeue).state;
    expect([started, toJobStatus(state.job)]).toEqual([started, "pending"]);
    state = applyCommand(
      state,
      toCommand({ kind: "start", transition: "start", late: "no", wait: 0 }, state, START),
    ).state;
  }
  const { job } = applyCommand(state, requeue).state;
  expect(toJobStatus(job)).toBe("failed");
  // The server may have kept running, so the message does not mention a stop.
  expect(job.error).toStartWith("The job was interrupted 6 times: ");
});

test("[JB-9] a log ends at its limit, reports the overflow once, and accepts nothing more", () => {
  const line = (output: string) => ({
    created_at: START,
    source: "provisioner" as const,
    level: "info" as const,
    stage: "",
    output,
  });
  const longLines = Array.from({ length: 20 }, () => line("x".repeat(65_536)));
  const say = { type: "say", now: START, job_id: "job-1", first_id: 1, logs: longLines, timings: [] } as const;
  const full = applyCommand(createStarted(), say);
  expect(full.state.job).toMatchObject({ logs_length: 1_048_576, logs_overflowed: true });
  const publishedLogs = full.events.flatMap((event) => (event.topic === "job" ? event.logs : []));
  expect(publishedLogs).toHaveLength(16);
  expect(full.events.filter((event) => event.topic === "workspace")).toHaveLength(1);
  expect(transition(full.state, say).kind).toBe("stale");
});

test("[WK-8] the deadline is the end of the start job plus the time to live; a stop has none", () => {
  const complete = { type: "complete", now: START + 9, job_id: "job-1", state: null } as const;
  const running = applyCommand(createStarted(60_000), complete).state;
  expect(running.build.deadline).toBe(START + 9 + 60_000);
  const stopping = applyCommand(running, { type: "build", now: START + 10, build: newBuild(2, "stop") }).state;
  expect(stopping.build.deadline).toBeNull();
});

/** Returns the change that a command makes. Throws if it makes none. */
const applyChange = (state: WorkspaceState, command: WorkspaceCommand): Change => {
  const decision = transition(state, command);
  if (decision.kind !== "change") throw new Error(`${command.type} changed nothing`);
  return decision;
};

const worker = { id: NIL_UUID, name: "w" };
const startJob = (state: WorkspaceState): WorkspaceState =>
  applyChange(state, {
    type: "start",
    now: START,
    job_id: state.job.id,
    worker,
    rows: [],
    agent_ids: ["agent"],
    daily_cost: 0,
  }).state;

test("[WK-31] a build's follow-up starts in the commit in which the build succeeds, and never otherwise", () => {
  const running = applyChange(startJob(createFresh().state), {
    type: "complete",
    now: START,
    job_id: "job-1",
    state: "left",
  }).state;
  const stop = { ...newBuild(2, "stop"), followed_by: newBuild(3, "start") };
  const stopping = startJob(applyChange(running, { type: "build", now: START, build: stop }).state);
  const end = { now: START, job_id: "job-2" };

  const done = applyChange(stopping, { type: "complete", ...end, state: "kept" });
  expect(done.state.build).toMatchObject({ id: "build-3", build_number: 3, transition: "start", state: "kept" });
  expect([toJobStatus(done.state.job), done.state.build.followed_by]).toEqual(["pending", null]);
  expect(done.effects).toEqual([{ do: "submit", job_id: "job-3" }]);
  // The end of the stop is published together with the start.
  expect(done.events.filter(({ topic }) => topic === "job")).toMatchObject([{ job_id: "job-2", done: true }]);
  expect(done.state.workspace.version).toBe(stopping.workspace.version + 2);

  const failed = applyChange(stopping, { type: "fail", ...end, error: "broken", error_code: "" });
  expect([failed.state.build.id, failed.effects]).toEqual(["build-2", []]);
  const canceling = applyChange(stopping, { type: "cancel", ...end }).state;
  const canceled = applyChange(canceling, { type: "complete", ...end, state: null });
  expect([canceled.state.build.id, toJobStatus(canceled.state.job)]).toEqual(["build-2", "canceled"]);
});

test("[SN-13] the owner is notified once when another person restores a snapshot, whether or not the workspace starts again", () => {
  const running = applyChange(startJob(createFresh().state), {
    type: "complete",
    now: START,
    job_id: "job-1",
    state: "",
  }).state;
  const restore = { snapshot_id: "snapshot", workspace_id: "workspace", once: true } as const;
  const end = { now: START, job_id: "job-2" };
  const listNotices = (overrides: Partial<NewBuild>, command: WorkspaceCommand): unknown[] => {
    const build = Object.assign(newBuild(2, "stop"), { restore, initiator_id: "boss" }, overrides);
    const restoring = startJob(applyChange(running, { type: "build", now: START, build }).state);
    return buildWorkspaceNotices(restoring, applyChange(restoring, command).state, START).flatMap(({ rows }) => rows);
  };
  const complete: WorkspaceCommand = { type: "complete", ...end, state: "" };
  const notice = expect.arrayContaining(["The files of dev were replaced"]);
  expect(listNotices({}, complete)).toEqual([notice]);
  expect(listNotices({ followed_by: newBuild(3, "start") }, complete)).toEqual([notice]);
  expect(listNotices({ initiator_id: NIL_UUID }, complete)).toEqual([]);
  const failed = listNotices({}, { type: "fail", ...end, error: "broken", error_code: "" });
  expect(failed).toEqual([expect.not.arrayContaining(["The files of dev were replaced"])]);
});

test("[TF-40] a build that lost its workers blocks the next build until it reports, is canceled while it waits, or is forgotten", () => {
  const tags = { provisioner: "terraform", organization: "o", region: "eu" };
  const blockedTags = { provisioner: "terraform", organization: "o", place: "here" };
  const change = (state: WorkspaceState, command: WorkspaceCommand): WorkspaceState => {
    const decision = transition(state, command);
    if (decision.kind !== "change") throw new Error(`${command.type} is ${decision.kind}`);
    return decision.state;
  };
  const startRun = (state: WorkspaceState): WorkspaceState => {
    const worker = { id: NIL_UUID, name: "w", places: { terraform: "here" } };
    return change(state, {
      type: "start",
      now: START,
      job_id: state.job.id,
      worker,
      rows: [],
      agent_ids: [],
      daily_cost: 0,
    });
  };
  const follow = (state: WorkspaceState, overrides: Partial<NewBuild> = {}): WorkspaceState =>
    change(state, {
      type: "build",
      now: START,
      build: buildWith(state.build.build_number + 1, { tags, ...overrides }),
    });
  let state = create(
    { ...NEW_WORKSPACE, created_at: START, updated_at: START, last_used_at: START },
    buildWith(1, { tags }),
    START,
  ).state;
  for (let lost = 1; lost <= 3; lost++) {
    state = startRun(state);
    state = change(state, { type: "requeue", now: START, job_id: state.job.id, lost: "The worker was lost." });
  }
  expect(toJobStatus(state.job)).toBe("failed");
  // Even if the next version requests no worker.
  expect(follow(state, { tags: {} }).tags).toEqual(blockedTags);
  expect(follow(state, { orphan: true, tags: {} }).tags).toEqual({});
  expect(follow(state, { told: "{}" }).tags).toEqual(tags);
  state = follow(state);
  expect(state.tags).toEqual({ ...tags, place: "here" });
  const { id: job_id } = state.job;
  const canceledWhileWaiting = change(state, { type: "cancel", now: START, job_id });
  expect(follow(canceledWhileWaiting).tags).toEqual(tags);
  const running = startRun(state);
  const ended: WorkspaceCommand[] = [
    { type: "complete", now: START, job_id, state: "{}" },
    { type: "fail", now: START, job_id, error: "x", error_code: "", left: { state: "{}" } },
  ];
  for (const command of ended) expect(follow(change(running, command)).tags).toEqual(tags);
  const canceledRunning = change(running, { type: "cancel", now: START, job_id });
  const unconfirmed: [WorkspaceState, WorkspaceCommand][] = [
    [canceledRunning, { type: "complete", now: START, job_id, state: null, unheard: true }],
    [canceledRunning, { type: "reap", now: START + CANCEL_TIMEOUT_MS, first_id: 1 }],
    [running, { type: "fail", now: START, job_id, error: "x", error_code: "" }],
    [running, { type: "reap", now: START + SILENCE_TIMEOUT_MS, first_id: 1 }],
  ];
  for (const [before, command] of unconfirmed) expect(follow(change(before, command)).tags.place).toBe("here");
});
