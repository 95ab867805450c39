// Returns a workspace's schedule activity: what extended its deadline, and what the server will do next. A Slipway extension.
import { parseJobs } from "#actors/workspace/activity.ts";
import { findNextAction } from "#actors/workspace/schedule.ts";
import { loadRules } from "#actors/workspace/schedule-rules.ts";
import { findCapturing } from "#actors/workspace/snapshot-rows.ts";
import { toOptionalRfc3339, toRfc3339 } from "#base/clock.ts";
import { notFound } from "#base/errors.ts";
import { countWorkingChats } from "#db/chats/chats.ts";
import { listActivity } from "#db/workspaces/activity.ts";
import { findBuild } from "#db/workspaces/builds.ts";
import { findJob } from "#db/workspaces/jobs.ts";
import { listSnapshots } from "#db/workspaces/snapshots.ts";
import { findWorkspace } from "#db/workspaces/workspaces.ts";
import { findExistingWorkspace, workspacePath } from "#domain/workspaces/find.ts";
import { type ActivityReason, WorkspaceActivity } from "#schema/workspaces/schedule.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

export const activity = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:workspace/activity",
      async ({ caller, params }) => {
        const { id } = await findExistingWorkspace(ctx, params.workspace, caller);
        return readActivity(ctx, id);
      },
      {
        user: true,
        params: workspacePath,
        response: { 200: WorkspaceActivity, ...fails(400, 401, 404, 410) },
        detail: operation({
          tags: ["Workspaces"],
          operationId: "getWorkspaceActivity",
          summary: "Get a workspace's scheduled activity",
          description:
            "Returns the last 50 events that changed the workspace's deadline or that the server triggered automatically, and the next planned action. Specific to this server.",
          access: "owner",
          scope: "workspace:read",
          placement: "workspace",
        }),
      },
    );

/** Jobs are reported every five minutes. An older report is stale. */
const MAX_JOB_REPORT_AGE_MS = 11 * 60_000;

const readActivity = async ({ store, clock }: ApiContext, id: string): Promise<WorkspaceActivity> => {
  const workspace = await store.get(findWorkspace({ id }));
  const build = workspace && (await store.get(findBuild({ id: workspace.latest_build_id })));
  const job = build && (await store.get(findJob({ id: build.job_id })));
  if (!workspace || !build || !job) throw notFound();
  const snapshots = await store.all(listSnapshots({ workspace_id: id }));
  const next = findNextAction(
    { workspace, build, job, capturing: findCapturing(snapshots) },
    await loadRules(store, workspace),
  );
  const rows = await store.all(listActivity({ workspace_id: id }));
  const isRunning = build.transition === "start" && job.completed_at !== null && job.error === "";
  const jobReport = rows.find(
    ({ at, detail }) => at > clock.now() - MAX_JOB_REPORT_AGE_MS && parseJobs(detail).length > 0,
  );
  const { count = 0 } = (await store.get(countWorkingChats({ workspace_id: id }))) ?? {};
  const chats = count === 0 ? [] : [count === 1 ? "a chat" : `${count} chats`];
  return {
    kept_by: isRunning ? [...parseJobs(jobReport?.detail ?? ""), ...chats] : [],
    next: next ? { what: next.operation, at: toRfc3339(next.at), why: next.detail } : null,
    deadline: toOptionalRfc3339(build.deadline),
    max_deadline: toOptionalRfc3339(build.max_deadline),
    entries: rows.map(({ at, reason, detail, actor_kind, actor_id, actor_name, old_deadline, new_deadline }) => ({
      at: toRfc3339(at),
      reason: reason as ActivityReason,
      detail,
      actor: {
        kind: actor_kind as "user" | "agent" | "server",
        ...(actor_id === null ? {} : { id: actor_id }),
        name: actor_name,
      },
      old_deadline: toOptionalRfc3339(old_deadline),
      new_deadline: toOptionalRfc3339(new_deadline),
    })),
  };
};
