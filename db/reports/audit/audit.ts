// Audit log entries. `insertAudit` returns the insert that must be part of the batch of the change, so that neither exists without the
// other (rule AU-1). Nothing else writes entries; see search.ts for reads.
import { NIL_UUID, uuid } from "#base/ids.ts";
import { getCurrentOrigin } from "#base/origin.ts";
import type { AuditAction, ResourceType } from "#schema/audit.ts";
import { insertInto, type Statement } from "../../engine/sql.ts";
import { audit_logs } from "../../schema/audit.ts";
import { computeDiff } from "./diff.ts";

/** A change to record. */
export type AuditEntry = {
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly action: AuditAction;
  readonly resource_type: ResourceType;
  /** UUID; the zero UUID for entities without one. */
  readonly resource_id?: string;
  /** Its display name. */
  readonly target: string;
  readonly icon?: string;
  readonly organization_id?: string | null;
  /** The workspace that it belongs to or is. */
  readonly workspace_id?: string;
  /** The rows; only logged fields are compared (diff.ts). A create has no `before`, a delete no `after`. */
  readonly before?: object | undefined;
  readonly after?: object | undefined;
  readonly build_reason?: string;
  readonly additional?: Readonly<Record<string, unknown>>;
  /** Overrides the user that the work is done for. */
  readonly user_id?: string | null;
  /** Overrides the status of the request's answer. */
  readonly status_code?: number;
};

/** An operation on an entity, and its time. */
export type AuditedChange = Pick<AuditEntry, "action" | "before" | "after" | "now">;

const insertAuditLog = insertInto(audit_logs);

/** Returns the insert of an entry, with the origin of the current work (src/base/origin.ts). */
export const insertAudit = (entry: AuditEntry): Statement => {
  const origin = getCurrentOrigin()?.();
  const { action, resource_type, before, after } = entry;
  const status_code = entry.status_code ?? origin?.status_code ?? 200;
  const hasDiff = status_code < 400 && action !== "login" && action !== "logout";
  const user_id = entry.user_id === undefined ? (origin?.user_id ?? null) : entry.user_id;
  const note = origin ? origin.note : user_id === null ? { automatic: "true" } : {};
  return insertAuditLog({
    id: uuid(),
    time: entry.now,
    organization_id: entry.organization_id ?? null,
    user_id,
    ip: origin?.ip ?? null,
    user_agent: (origin?.user_agent ?? "").slice(0, MAX_TEXT_CHARS),
    action,
    resource_type,
    resource_id: entry.resource_id ?? NIL_UUID,
    resource_target: entry.target.slice(0, MAX_TEXT_CHARS),
    resource_icon: entry.icon ?? "",
    workspace_id: entry.workspace_id ?? null,
    build_reason: entry.build_reason ?? "",
    diff: hasDiff ? computeDiff(resource_type, before as Row, after as Row) : {},
    additional_fields: { ...entry.additional, ...note },
    status_code,
    request_id: origin?.request_id ?? NIL_UUID,
  });
};

type Row = Readonly<Record<string, unknown>> | undefined;

/** Maximum length of a name and of a user agent. */
const MAX_TEXT_CHARS = 1024;

/** Returns whether the log records this change. */
export const isAudited = (resource_type: ResourceType, before: object, after: object): boolean =>
  Object.keys(computeDiff(resource_type, before as Row, after as Row)).length > 0;
