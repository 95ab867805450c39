// Presents a template version.
import { toRfc3339 } from "#base/clock.ts";
import { NIL_UUID } from "#base/ids.ts";
import type { VersionView } from "#db/templates/versions.ts";
import type { TemplateVersion } from "#schema/templates/template-version.ts";
import { matchProvisioners, presentJob } from "../builds/job.ts";
import type { DomainContext } from "../context.ts";

export const presentVersion = (
  { version, creator, job, template }: VersionView,
  ctx: DomainContext,
): TemplateVersion => ({
  id: version.id,
  template_id: version.template_id ?? undefined,
  organization_id: version.organization_id,
  name: version.name,
  message: version.message,
  created_at: toRfc3339(version.created_at),
  updated_at: toRfc3339(version.updated_at),
  job: presentJob(
    job,
    {
      template_version_name: version.name,
      template_id: version.template_id ?? NIL_UUID,
      template_name: template?.name ?? "",
      template_display_name: template?.display_name ?? "",
      template_icon: template?.icon ?? "",
    },
    ctx.jobs,
  ),
  readme: version.readme,
  created_by: creator,
  archived: version.archived,
  warnings: [],
  matched_provisioners: matchProvisioners(job.tags, ctx.jobs, ctx.clock.now()),
  has_external_agent: version.has_external_agent,
});
