// Provisioner jobs of an organization, for its template administrators (rule PV-30): what is running, what is waiting, and why.
import { forbidden, notFound } from "#base/errors.ts";
import { NIL_UUID } from "#base/ids.ts";
import { findJobInOrganization, type ListedJob, listJobsByOrganization } from "#db/workspaces/job-lists.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { ProvisionerJob } from "#schema/workspaces/job.ts";
import { canManageTemplates } from "../access.ts";
import { presentJob, type Queue } from "../builds/job.ts";
import type { DomainContext } from "../context.ts";
import { loadOrganization } from "../organizations/find.ts";

/** Maximum rows considered for one response; older jobs have their own pages. */
const MAX_JOBS = 500;

/** Returns the organization whose jobs the caller can see. Rejects with 404 when it is not visible, otherwise with 403. */
export const findJobsOrganization = async (ctx: DomainContext, text: string, caller: UserCaller): Promise<string> => {
  const { id } = await loadOrganization(ctx.store, text, caller);
  if (!canManageTemplates(caller, id)) throw forbidden("Only template administrators can see all jobs.");
  return id;
};

export const presentListedJob = ({ job, template, version, workspace }: ListedJob, queue: Queue): ProvisionerJob =>
  presentJob(
    // The values of a dry run are private to the person who started it.
    { ...job, input: toInput(job.input) },
    {
      template_version_name: version?.name ?? "",
      template_name: template?.name ?? "",
      template_display_name: template?.display_name ?? "",
      template_icon: template?.icon ?? "",
      template_id: template?.id ?? NIL_UUID,
      ...(workspace ? { workspace_id: workspace.id, workspace_name: workspace.name } : {}),
    },
    queue,
  );

const toInput = ({ template_version_id, workspace_build_id }: ListedJob["job"]["input"]) => ({
  ...(template_version_id === undefined ? {} : { template_version_id }),
  ...(workspace_build_id === undefined ? {} : { workspace_build_id }),
});

export type JobsQuery = { readonly status: readonly string[]; readonly initiator: string; readonly limit: number };

/** Returns the jobs, newest first. */
export const listJobs = async (
  ctx: DomainContext,
  organization_id: string,
  { status, initiator, limit }: JobsQuery,
): Promise<ProvisionerJob[]> => {
  const rows = await ctx.store.scan(listJobsByOrganization({ organization_id, initiator, limit: MAX_JOBS }));
  const shown = rows.map((row) => presentListedJob(row, ctx.jobs));
  return shown.filter((one) => status.length === 0 || status.includes(one.status)).slice(0, limit);
};

/** Rejects with 404. */
export const findListedJob = async (
  ctx: Pick<DomainContext, "store">,
  organization_id: string,
  id: string,
): Promise<ListedJob> => {
  const found = await ctx.store.get(findJobInOrganization({ organization_id, id: id.toLowerCase() }));
  if (!found) throw notFound();
  return found;
};
