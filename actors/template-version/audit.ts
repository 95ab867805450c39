// Builds audit log entries for template versions, and for templates that are created from a version or get a new active version (rules
// AU-1, AU-7). They do not contain values of variables. Pure; used only by the actor of a version.

import type { Statement } from "#db/engine/sql.ts";
import { type AuditEntry, insertAudit, isAudited } from "#db/reports/audit/audit.ts";
import type { VersionState } from "./state.ts";

/** Returns the entries for a change. `before`: undefined for a new version. */
export const buildVersionEntries = (
  before: VersionState | undefined,
  { version, job }: VersionState,
  now: number,
): readonly AuditEntry[] => {
  const { id, name, organization_id } = version;
  const base = { now, resource_type: "template_version", resource_id: id, target: name, organization_id } as const;
  const after = { ...version, canceled_at: job.canceled_at };
  if (!before) return [{ ...base, action: "create", after }];
  const previous = { ...before.version, canceled_at: before.job.canceled_at };
  return isAudited("template_version", previous, after) ? [{ ...base, action: "write", before: previous, after }] : [];
};

type Template = { readonly id: string; readonly name: string; readonly icon: string; readonly organization_id: string };

const toEntryBase = ({ id, name, icon, organization_id }: Template, now: number) =>
  ({ now, resource_type: "template", resource_id: id, target: name, icon, organization_id }) as const;

export const auditTemplateCreated = (template: Template, now: number): Statement =>
  insertAudit({ ...toEntryBase(template, now), action: "create", after: template });

/** Returns the entry for a new active version. */
export const auditTemplateActivated = (
  template: Template,
  patch: { readonly active_version_id: string; readonly updated_at: number },
): Statement =>
  insertAudit({
    ...toEntryBase(template, patch.updated_at),
    action: "write",
    before: template,
    after: { ...template, ...patch },
  });
