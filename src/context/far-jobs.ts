// Jobs across nodes: what the queue of one says to those of the others goes over the links between nodes (actors/runtime/far-jobs.ts), and the
// agents of a workspace are told to end by the node that has it, whoever does the build.
import { JobReport } from "#actors/job/report.ts";
import type { Directory } from "#actors/runtime/directory.ts";
import { FarJobs, type FarQuestion } from "#actors/runtime/far-jobs.ts";
import type { JobQueue } from "#actors/runtime/job-queue.ts";
import type { JobOwner, NamedJob } from "#actors/runtime/other-queues.ts";
import type { Imports, TemplateVersionActor } from "#actors/template-version/actor.ts";
import type { DryRunActor, DryRuns } from "#actors/template-version/dry-run-actor.ts";
import type { WorkspaceActor } from "#actors/workspace/actor.ts";
import type { WorkedBuild } from "#actors/workspace/build-runner.ts";
import type { Builds } from "#actors/workspace/effects.ts";
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { Report } from "#src/provisioners/provisioner.ts";
import type { Far } from "./far-actors.ts";

const JOBS = "jobs";
const SHUT_DOWN = "shut_down";
/** Anyone who owns a job, as ids are looked up. */
const PARTED = { build: "workspace", import: "template_version", dry_run: "job" } as const;

/** Older dry runs do not say theirs. */
const NO_PART = -1;

/** How builds, imports and dry runs are done here, and who owns them. */
export type JobWork = {
  readonly builds: Builds;
  readonly imports: Imports;
  readonly runs: DryRuns;
  readonly workspaces: Directory<WorkspaceActor>;
  readonly versions: Directory<TemplateVersionActor>;
  readonly dryRuns: Directory<DryRunActor>;
};

type Needs = { readonly queue: () => JobQueue; readonly work: () => JobWork };

export const farJobs = ({ parts, index, links }: Far, clock: Clock, { queue, work }: Needs): FarJobs => {
  const far = new FarJobs({
    parts,
    clock,
    queue,
    ask: (node, question) => links.call(node, JOBS, question),
    submit: (job) => submit(work(), job),
    async requeue(of, job_id) {
      const part = await index.of(PARTED[of.kind], of.id);
      // Anyone who has it now asks, too.
      if (part !== undefined && parts.has(part)) await requeue(work(), of, job_id);
    },
  });
  links.serve(JOBS, (question) => far.answer(question as FarQuestion));
  return far;
};

const submit = (
  { builds, imports, runs }: JobWork,
  { id, of, created_at, urgency, tags = {}, part = NO_PART }: NamedJob,
): void => {
  const job = { job_id: id, created_at, tags, part };
  if (of?.kind === "build") builds.submit({ ...job, workspace_id: of.id, urgency });
  if (of?.kind === "import") imports.submit({ ...job, version_id: of.id });
  if (of?.kind === "dry_run") runs.submit(job);
};

const requeue = async ({ workspaces, versions, dryRuns }: JobWork, { kind, id }: JobOwner, job_id: string) => {
  try {
    if (kind === "build") await workspaces.ask(id, "requeueJob", { job_id, moved: true });
    if (kind === "import") await versions.ask(id, "resume", { moved: true });
    if (kind === "dry_run") await dryRuns.ask(id, "requeueJob", { moved: true });
  } catch (error) {
    // On disk it is open: its timer ends it.
    log("builds").error("job {job_id} cannot be taken up again: {error}", { job_id, error });
  }
};

/** Lets the agents of a workspace end in order, here. */
type ShutDown = (workspace_id: string, report: Report, signal: AbortSignal) => Promise<void>;

/** The same by the node that has the workspace; what is said in the meantime goes from there to the build's log. */
export const shutDownByOwner = (
  far: Far | undefined,
  clock: Clock,
  workspaces: () => Directory<WorkspaceActor>,
  shutDown: ShutDown,
): ((build: WorkedBuild, report: Report, signal: AbortSignal) => Promise<void>) => {
  if (!far) return ({ workspace_id }, report, signal) => shutDown(workspace_id, report, signal);
  const { parts, index, links } = far;
  links.serve(SHUT_DOWN, async (asked) => {
    const { workspace_id, job_id } = asked as WorkedBuild;
    const report = new JobReport(clock, (said) => workspaces().ask(workspace_id, "say", { job_id, ...said }));
    await shutDown(workspace_id, report, new AbortController().signal);
    await report.settled();
  });
  return async (build, report, signal) => {
    const part = await index.of("workspace", build.workspace_id);
    if (part === undefined || parts.has(part)) return shutDown(build.workspace_id, report, signal);
    const node = parts.nodeOf(part);
    if (!node) return;
    const canceled = new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    const asked = links.call(node, SHUT_DOWN, build).catch((error) => {
      log("builds").warn("the agents of {id} could not be ended in order: {error}", { id: build.workspace_id, error });
    });
    await Promise.race([asked, canceled]);
  };
};
