// Reports of jobs carry the number of their attempt.
import { expect, test } from "bun:test";
import type { Directory } from "#actors/runtime/directory.ts";
import { JobQueue } from "#actors/runtime/job-queue.ts";
import type { TemplateVersionActor } from "#actors/template-version/actor.ts";
import type { DryRunActor } from "#actors/template-version/dry-run-actor.ts";
import { DryRunRunner } from "#actors/template-version/dry-run-runner.ts";
import { ImportRunner } from "#actors/template-version/import-runner.ts";
import type { WorkspaceActor } from "#actors/workspace/actor.ts";
import { BuildRunner } from "#actors/workspace/build-runner.ts";
import { systemClock } from "#base/clock.ts";
import type { Report } from "#src/provisioners/provisioner.ts";
import { until } from "#test/support/until.ts";

const REQUEST = {
  transition: "start",
  workspace: { id: "w", name: "w" },
  manifest: { provisioner: "made-up", resources: [] },
};
/** Returns a directory that records the reports of a job's third attempt. */
const createRecordingDirectory = () => {
  const reports: string[] = [];
  const askRemote = async (_: string, message: string, { attempt, moved }: { attempt?: number; moved?: boolean }) => {
    reports.push(`${message}${moved ? " moved" : ""} of ${attempt}`);
    return "done";
  };
  const askLocal = async () => ({ request: REQUEST, orphan: false, verbose: false, file_id: "f", attempt: 3 });
  return { reports, directory: { ask: askRemote, askHere: askLocal } as unknown };
};
/** Resolves when the queue is idle. */
const runJobs = async (submit: (jobs: JobQueue) => void): Promise<void> => {
  const jobs = new JobQueue(1);
  submit(jobs);
  await until(() => !jobs.has("job"));
};
const job = { job_id: "job", created_at: 0, tags: {}, part: 1 };
const successfulProvisioner = {
  name: "made-up",
  run: async (_: unknown, report: Report) => logAndSucceed(report),
  plan: async (_: unknown, report: Report) => logAndSucceed(report),
};
const logAndSucceed = (report: Report) => {
  report.log("info", "Planning", "a line");
  return { state: null, resources: [] };
};
const failingProvisioner = { name: "made-up", run: () => Promise.reject(new Error("broken")) };

test("[WK-7] every build report carries its attempt, so that reports of an earlier run are ignored", async () => {
  for (const [provisioner, end] of [
    [successfulProvisioner, "completeJob"],
    [failingProvisioner, "failJob"],
  ] as const) {
    const { reports, directory } = createRecordingDirectory();
    const workspaces = () => directory as Directory<WorkspaceActor>;
    const provisioners = new Map([["made-up", provisioner]]);
    const returnUnchanged = async (request: unknown) => request;
    await runJobs((jobs) =>
      new BuildRunner({ clock: systemClock, jobs, workspaces, provisioners, equip: returnUnchanged } as never).submit({
        ...job,
        workspace_id: "w",
        urgency: "person",
      }),
    );
    expect(reports).toEqual(["say of 3", `${end} of 3`]);
  }
});

test("[WK-7] reports of an import and a dry run carry their attempt", async () => {
  const imports = createRecordingDirectory();
  const versions = () => imports.directory as Directory<TemplateVersionActor>;
  const store = { get: async () => undefined };
  await runJobs((jobs) =>
    new ImportRunner({ clock: systemClock, jobs, versions, store } as never).submit({ ...job, version_id: "v" }),
  );
  expect(imports.reports).toEqual(["failJob of 3"]);

  const runs = createRecordingDirectory();
  const dryRuns = () => runs.directory as Directory<DryRunActor>;
  const provisioners = new Map([["made-up", successfulProvisioner]]);
  const returnUnchanged = async (request: unknown) => request;
  await runJobs((jobs) =>
    new DryRunRunner({ clock: systemClock, jobs, dryRuns, provisioners, equip: returnUnchanged } as never).submit(job),
  );
  expect(runs.reports.at(-1)).toBe("completeJob of 3");
  expect(runs.reports.every((report) => report.endsWith(" of 3"))).toBe(true);
});

test("[JB-12] a build and a dry run that a database outage interrupts go back into the queue", async () => {
  const rejectUnreachable = () => Promise.reject(Object.assign(new Error("no answer"), { reason: "unreachable" }));
  const provisioners = new Map([["made-up", { name: "made-up", run: rejectUnreachable, plan: rejectUnreachable }]]);
  const returnUnchanged = async (request: unknown) => request;
  const runs = createRecordingDirectory();
  const dryRuns = () => runs.directory as Directory<DryRunActor>;
  await runJobs((jobs) =>
    new DryRunRunner({ clock: systemClock, jobs, dryRuns, provisioners, equip: returnUnchanged } as never).submit(job),
  );
  const builds = createRecordingDirectory();
  const workspaces = () => builds.directory as Directory<WorkspaceActor>;
  await runJobs((jobs) =>
    new BuildRunner({ clock: systemClock, jobs, workspaces, provisioners, equip: returnUnchanged } as never).submit({
      ...job,
      workspace_id: "w",
      urgency: "person",
    }),
  );
  for (const { reports } of [runs, builds]) expect(reports).toEqual(["say of 3", "requeueJob moved of 3"]);
});
