// The decisions of a template version: which reports are accepted and what they write. Late reports change nothing.
import { describe, expect, test } from "bun:test";
import { MAX_ATTEMPTS, PENDING_TIMEOUT_MS, SILENCE_TIMEOUT_MS } from "#actors/job/state.ts";
import {
  transition,
  type VersionChange,
  type VersionCommand,
  type VersionState,
} from "#actors/template-version/state.ts";
import { uuid } from "#base/ids.ts";
import { toJobStatus } from "#schema/workspaces/job.ts";

const createState = (): VersionState => {
  const id = uuid();
  const times = { created_at: 0, updated_at: 0 };
  return {
    version: {
      id,
      template_id: null,
      part: 0,
      organization_id: uuid(),
      name: "v1",
      message: "",
      job_id: uuid(),
      file_id: uuid(),
      created_by: uuid(),
      archived: false,
      variable_values: {},
      sealed_variable_values: "",
      ...times,
    },
    job: {
      id: uuid(),
      key: 1,
      tags: {},
      error: "",
      error_code: "",
      worker_id: null,
      worker_name: "",
      attempts: 0,
      ...times,
      started_at: null,
      canceled_at: null,
      completed_at: null,
      logs_length: 0,
      logs_overflowed: false,
    },
  };
};

const worker = { id: uuid(), name: "built-in" };
const START: VersionCommand = { type: "start", now: 1, worker };
const IMPORTED: VersionCommand = { type: "imported", now: 9, manifest: "{}", readme: "" };

/** Applies the commands in order; "stale" fails the test. */
const applyCommands = (...commands: VersionCommand[]): VersionChange => {
  let change: VersionChange = { state: createState(), writes: [] };
  for (const command of commands) {
    const next = transition(change.state, command);
    if (next === "stale") throw new Error(`${command.type} was stale`);
    change = next;
  }
  return change;
};
const writesManifest = ({ writes }: VersionChange): boolean =>
  writes.some(({ sql }) => sql.includes("template_versions") && sql.includes("manifest"));

describe("an import", () => {
  test("[TP-13] a successful import writes its manifest with the end of the job and notifies followers", () => {
    const done = applyCommands(START, IMPORTED);
    expect(toJobStatus(done.state.job)).toBe("succeeded");
    expect(writesManifest(done)).toBe(true);
    expect(done.announce).toEqual({ logs: [], done: true });
    expect(done.writes.some(({ sql }) => sql.startsWith('delete from "timers"'))).toBe(true);
  });

  test("[TP-14] a running import that is canceled is stopped, and a late success writes no manifest", () => {
    const cancelling = applyCommands(START, { type: "cancel", now: 2 });
    expect(cancelling.effect).toBe("cancel");
    expect(toJobStatus(cancelling.state.job)).toBe("canceling");
    const ended = transition(cancelling.state, IMPORTED) as VersionChange;
    expect(toJobStatus(ended.state.job)).toBe("canceled");
    expect(writesManifest(ended)).toBe(false);
  });

  test("[TP-15] an import without required values fails and keeps its manifest, so that callers see which values are missing", () => {
    const failed = { type: "failed", now: 2, error: "variable a", error_code: "REQUIRED_TEMPLATE_VARIABLES" } as const;
    expect(writesManifest(applyCommands(START, { ...failed, manifest: "{}" }))).toBe(true);
    expect(writesManifest(applyCommands(START, failed))).toBe(false);
    expect(applyCommands(START, failed).state.job).toMatchObject({
      error: "variable a",
      error_code: failed.error_code,
    });
  });

  test("[TP-16] resubmits an import that a crash interrupts; an import that keeps crashing the server fails", () => {
    const requeued = applyCommands(START, { type: "requeue", now: 5 });
    expect(toJobStatus(requeued.state.job)).toBe("pending");
    expect(requeued.effect).toBe("submit");
    const commands = Array.from({ length: MAX_ATTEMPTS }, (_, i): VersionCommand[] => [
      { ...START, now: 10 * i } as VersionCommand,
      { type: "requeue", now: 10 * i + 5 },
    ]).flat();
    const last = applyCommands(...commands);
    expect(toJobStatus(last.state.job)).toBe("failed");
    expect(last.effect).toBeUndefined();
  });

  test("[TP-16] late reports of a run are stale once the job waits or has started again", () => {
    const pendingAgain = applyCommands(START, { type: "requeue", now: 5 });
    const restarted = transition(pendingAgain.state, { ...START, now: 6 } as VersionCommand) as VersionChange;
    const line = { created_at: 1, source: "provisioner", level: "info", stage: "s", output: "o" } as const;
    const reports: VersionCommand[] = [
      { type: "say", now: 7, first_id: 1, logs: [line] },
      { type: "touch", now: 7 },
      { type: "failed", now: 7, error: "x", error_code: "" },
      { type: "requeue", now: 7, lost: "The worker has gone." },
      { type: "complete", now: 7 },
      IMPORTED,
    ];
    const applyAttempt = ({ state }: VersionChange, attempt: number) =>
      reports.filter((report) => transition(state, { ...report, attempt } as VersionCommand) !== "stale");
    expect(applyAttempt(pendingAgain, 1)).toEqual([]);
    expect(applyAttempt(restarted, 1)).toEqual([]);
    expect(applyAttempt(restarted, 2)).toEqual(reports);
  });

  test("[TP-14] an import that no worker takes, or that falls silent, fails with a reason", () => {
    const waiting = createState();
    expect(transition(waiting, { type: "reap", now: PENDING_TIMEOUT_MS - 1 })).toBe("stale");
    const timedOut = transition(waiting, { type: "reap", now: PENDING_TIMEOUT_MS }) as VersionChange;
    expect(timedOut.state.job.error).toContain("No worker picked up the job");
    const silent = transition(applyCommands(START).state, {
      type: "reap",
      now: 1 + SILENCE_TIMEOUT_MS,
    }) as VersionChange;
    expect(toJobStatus(silent.state.job)).toBe("failed");
  });

  test.each<VersionCommand>([
    START,
    IMPORTED,
    { type: "failed", now: 9, error: "x", error_code: "" },
    { type: "cancel", now: 9 },
    { type: "requeue", now: 9 },
    {
      type: "say",
      now: 9,
      first_id: 1,
      logs: [{ created_at: 1, source: "provisioner", level: "info", stage: "s", output: "o" }],
    },
  ])("[TP-13] a report after the end is stale: $type", (command) => {
    expect(transition(applyCommands(START, IMPORTED).state, command)).toBe("stale");
  });
});
