// Provisioner jobs of an organization: imports, builds and dry runs, with their logs.
import { t } from "elysia";
import { invalid } from "#base/errors.ts";
import { organizationPath } from "#domain/organizations/find.ts";
import { findJobsOrganization, findListedJob, listJobs, presentListedJob } from "#domain/provisioners/jobs.ts";
import { JOB_STATUSES, JobLog, ProvisionerJob } from "#schema/workspaces/job.ts";
import { LogQuery, parseLogRequest } from "../agents/log-query.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { jobLogs } from "../jobs/logs.ts";

const tags = ["Provisioners"];
const user = true;
const jobPath = t.Object({
  ...organizationPath.properties,
  job: t.String({ format: "uuid", description: "The ID of the job." }),
});

const parseStatuses = (text = ""): string[] => {
  const statuses = text.split(",").filter((one) => one !== "");
  if (statuses.every((one) => (JOB_STATUSES as readonly string[]).includes(one))) return statuses;
  throw invalid("Query parameters have invalid values.", [
    { field: "status", detail: `must be some of ${JOB_STATUSES.join(", ")}` },
  ]);
};

export const provisionerJobs = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:organization/provisionerjobs",
      async ({ caller, params, query }) => {
        const organization_id = await findJobsOrganization(ctx, params.organization, caller);
        const { status, initiator = "", limit = 50 } = query;
        return listJobs(ctx, organization_id, {
          status: parseStatuses(status),
          initiator: initiator.toLowerCase(),
          limit,
        });
      },
      {
        user,
        params: organizationPath,
        query: t.Object({
          status: t.Optional(
            t.String({
              description: "Return only jobs with these statuses, comma-separated, such as `pending,running`.",
            }),
          ),
          initiator: t.Optional(t.String({ format: "uuid", description: "Return only jobs of this user." })),
          limit: t.Optional(
            t.Integer({ minimum: 1, maximum: 500, description: "The maximum number of jobs to return; default 50." }),
          ),
        }),
        response: { 200: t.Array(ProvisionerJob), ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "listProvisionerJobs",
          summary: "List provisioner jobs",
          description: "Returns jobs among the last 500, newest first. Available to template administrators.",
          access: "organization_admins",
          scope: "provisioner_jobs:read",
        }),
      },
    )
    .get(
      "/:organization/provisionerjobs/:job",
      async ({ caller, params }) => {
        const organization_id = await findJobsOrganization(ctx, params.organization, caller);
        return presentListedJob(await findListedJob(ctx, organization_id, params.job), ctx.jobs);
      },
      {
        user,
        params: jobPath,
        response: { 200: ProvisionerJob, ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "getProvisionerJob",
          summary: "Get a provisioner job",
          access: "organization_admins",
          scope: "provisioner_jobs:read",
          placement: "job",
        }),
      },
    )
    .get(
      "/:organization/provisionerjobs/:job/logs",
      async ({ caller, params, query, request }) => {
        const requested = parseLogRequest(query);
        const organization_id = await findJobsOrganization(ctx, params.organization, caller);
        const { job } = await findListedJob(ctx, organization_id, params.job);
        return jobLogs(ctx, request, job, requested, caller);
      },
      {
        user,
        params: jobPath,
        query: LogQuery,
        response: { 200: t.Array(JobLog), ...fails(400, 401, 403, 404, 503) },
        detail: operation({
          tags,
          operationId: "listProvisionerJobLogs",
          summary: "List log lines of a provisioner job",
          sends: JobLog,
          access: "organization_admins",
          scope: "provisioner_jobs:read",
          placement: "job",
        }),
      },
    );
