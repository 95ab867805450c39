// Creates, changes and deletes templates. A template is created by its first version's actor, in one batch with the version's own change.

import { lowerPortShares } from "#actors/workspace/port-limits.ts";
import { AppError, conflict, forbidden, invalidField, notFound } from "#base/errors.ts";
import { sha256, uuid } from "#base/ids.ts";
import { WEEKDAYS } from "#base/schedule/weekdays.ts";
import type { Statement } from "#db/engine/sql.ts";
import { CommitError } from "#db/engine/store.ts";
import { setTimersOfTemplate } from "#db/engine/timers.ts";
import { insertNotification } from "#db/notifications/notifications.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import type { templates } from "#db/schema/templates.ts";
import {
  countWorkspacesByTemplate,
  deleteTemplate,
  listWorkspaceOwnersByTemplate,
  type TemplateRow,
  updateTemplate,
} from "#db/templates/templates.ts";
import { findTemplateVersion } from "#db/templates/versions.ts";
import type { OrganizationRow } from "#db/users/organizations.ts";
import { schedulePrebuildCheck } from "#db/workspaces/prebuilds.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import type { CreateTemplate, PatchTemplate } from "#schema/templates/template.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import { canManageTemplates } from "../access.ts";
import { requireCodingAgent } from "../ai/coding-agents.ts";
import type { DomainContext } from "../context.ts";

const HOUR_MS = 3_600_000;
const DEFAULT_TRASH_DAYS = 7;

/**
 * Returns the new template's ID. Rejects with 400 when the version or the default coding agent cannot be used, with 412 while the version
 * is being imported, and with 409 for a name that is taken.
 */
export const makeTemplate = async (
  ctx: Pick<DomainContext, "store" | "versions">,
  organization: OrganizationRow,
  created_by: string,
  body: CreateTemplate,
): Promise<string> => {
  const version = await ctx.store.get(findTemplateVersion({ id: body.template_version_id.toLowerCase() }));
  if (version?.organization_id !== organization.id) {
    throw invalidField("template_version_id", "is not a template version of this organization");
  }
  const manifest = version.manifest ? (JSON.parse(version.manifest) as Manifest) : undefined;
  const schedule = manifest?.schedule;
  const default_coding_agent = body.default_coding_agent ?? manifest?.default_coding_agent ?? "";
  if (default_coding_agent !== "") await requireCodingAgent(ctx, default_coding_agent, "default_coding_agent");
  const id = uuid();
  await ctx.versions.ask(version.id, "makeTemplate", {
    id,
    organization_id: organization.id,
    created_by,
    name: body.name,
    display_name: body.display_name ?? "",
    description: body.description ?? "",
    icon: body.icon ?? "",
    deprecation_message: "",
    default_ttl_ms: body.default_ttl_ms ?? schedule?.default_ttl_ms ?? 0,
    activity_bump_ms: body.activity_bump_ms ?? schedule?.activity_bump_ms ?? HOUR_MS,
    autostop_requirement_days: body.autostop_requirement?.days_of_week ?? [],
    autostop_requirement_weeks: body.autostop_requirement?.weeks || 1,
    autostart_requirement_days: body.autostart_requirement?.days_of_week ?? [...WEEKDAYS],
    allow_user_cancel_workspace_jobs: body.allow_user_cancel_workspace_jobs ?? true,
    allow_user_autostart: body.allow_user_autostart ?? true,
    allow_user_autostop: body.allow_user_autostop ?? true,
    failure_ttl_ms: body.failure_ttl_ms ?? 0,
    time_til_dormant_ms: body.dormant_ttl_ms ?? schedule?.time_til_dormant_ms ?? 0,
    time_til_dormant_autodelete_ms: body.delete_ttl_ms ?? 0,
    require_active_version: body.require_active_version ?? false,
    trash_days: body.trash_days ?? DEFAULT_TRASH_DAYS,
    wake_on_connect: body.wake_on_connect ?? "people",
    allow_dotfiles: body.allow_dotfiles ?? true,
    snapshots_on_stop: body.snapshots_on_stop ?? 0,
    default_coding_agent,
    home_backups: body.home_backups ?? true,
    max_port_share_level: body.max_port_share_level ?? "public",
    use_classic_parameter_flow: body.use_classic_parameter_flow ?? true,
    cors_behavior: body.cors_behavior ?? "simple",
    user_acl: {},
    group_acl: null,
  });
  return id;
};

/** Rejects with 403 for callers who do not administer templates there. */
export const requireTemplateAdmin = (caller: UserCaller, organization: OrganizationRow): void => {
  if (!canManageTemplates(caller, organization.id)) {
    throw forbidden("Only template administrators can create templates.");
  }
};

const auditTemplate = (
  { id, name, icon, organization_id }: TemplateRow,
  action: "write" | "delete",
  change: { before?: TemplateRow; after?: object },
  now: number,
) =>
  insertAudit({
    now,
    action,
    resource_type: "template",
    resource_id: id,
    target: name,
    icon,
    organization_id,
    ...change,
  });

const omitUndefined = (patch: object): object =>
  Object.fromEntries(Object.entries(patch).filter(([, value]) => value !== undefined));

/** Notifies users with a workspace from the template that it is deprecated, once per message. */
const buildDeprecationNotices = async (
  { store }: Pick<DomainContext, "store">,
  { id, name, display_name, icon, deprecation_message }: TemplateRow,
  message: string | undefined,
  now: number,
): Promise<Statement[]> => {
  if (!message || message === deprecation_message) return [];
  const values = { template: display_name || name, message };
  const base = { now, kind: "template_deprecated", values, targets: [id], icon, path: `/templates/${id}` } as const;
  const dedupe = `deprecated:${id}:${sha256(message).slice(0, 16)}`;
  return (await store.all(listWorkspaceOwnersByTemplate({ id })))
    .filter(({ owner_id }) => owner_id !== PREBUILDS_USER_ID)
    .map(({ owner_id }) => insertNotification({ ...base, user_id: owner_id, dedupe }));
};

/** Changes the given members; omitted ones are unchanged. Rejects with 400 for a new default coding agent that cannot be used. */
export const changeTemplate = async (ctx: DomainContext, template: TemplateRow, body: PatchTemplate): Promise<void> => {
  const { default_coding_agent: agent = "" } = body;
  // A coding agent that was disabled later may stay selected.
  if (agent !== "" && agent !== template.default_coding_agent)
    await requireCodingAgent(ctx, agent, "default_coding_agent");
  const { autostop_requirement, autostart_requirement, ...settings } = body;
  const { update_workspace_last_used_at, update_workspace_dormant_at, ...plain } = settings;
  const patch: Partial<typeof templates.$inferInsert> = { ...plain };
  if (autostop_requirement) {
    patch.autostop_requirement_days = autostop_requirement.days_of_week;
    patch.autostop_requirement_weeks = autostop_requirement.weeks || 1;
  }
  if (autostart_requirement) patch.autostart_requirement_days = autostart_requirement.days_of_week;
  const now = ctx.clock.now();
  const setTimers = (name: string) => setTimersOfTemplate(template.id, name, now);
  const resets = [
    ...(update_workspace_last_used_at ? [setTimers("reset_used")] : []),
    ...(update_workspace_dormant_at ? [setTimers("reset_dormant")] : []),
  ];
  if (resets.length === 0 && Object.values(patch).every((value) => value === undefined)) return;
  try {
    // The template's workspaces recompute their schedules (rule TI-24); resets must be applied before anything is due.
    const timers = [...(resets.length > 0 ? resets : [setTimers("schedule")]), schedulePrebuildCheck(template.id, now)];
    await ctx.store.commit([
      updateTemplate(template.id, { ...patch, updated_at: now }, { expect: 1 }),
      ...timers,
      ...(await buildDeprecationNotices(ctx, template, patch.deprecation_message, now)),
      auditTemplate(template, "write", { before: template, after: { ...template, ...omitUndefined(patch) } }, now),
    ]);
  } catch (error) {
    if (!(error instanceof CommitError) || error.reason !== "constraint") throw error;
    throw conflict("A template with this name already exists.", [{ field: "name", detail: "must be unique" }]);
  }
  ctx.topics.publish("shown_changed", template.id, {});
  if (patch.deprecation_message) ctx.topics.publish("notified", template.id, {});
  if (patch.max_port_share_level !== undefined) await lowerPortShares(ctx.store, ctx.workspaces, template.id);
};

/** Rejects with 400 while it has workspaces. */
export const removeTemplate = async (ctx: DomainContext, template: TemplateRow): Promise<void> => {
  const { id } = template;
  const now = ctx.clock.now();
  try {
    await ctx.store.commit([deleteTemplate({ id, now }), auditTemplate(template, "delete", { before: template }, now)]);
  } catch (error) {
    if (!(error instanceof CommitError) || error.reason !== "stale") throw error;
    const { count = 0 } = (await ctx.store.get(countWorkspacesByTemplate({ id }))) ?? {};
    if (count === 0) throw notFound();
    throw new AppError("invalid", "The template still has workspaces.", {
      detail: `Delete its ${count} workspace${count === 1 ? "" : "s"} first.`,
    });
  }
  ctx.topics.publish("shown_changed", id, {});
};
