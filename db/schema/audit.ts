// Who changed what, when and from where. Written in the same batch as the change (db/reports/audit/audit.ts) and never changed; deleted only by
// retention (actors/audit/retention.ts). Refers to nothing: an entry outlives what it tells of.
import { sql } from "drizzle-orm";
import { index, integer, text } from "drizzle-orm/sqlite-core";
import type { AuditAction, ResourceType } from "#schema/audit.ts";
import { tableTouching } from "./touching.ts";

/** Field -> what it was and is; secrets without their values. */
export type AuditDiff = Readonly<Record<string, { old: unknown; new: unknown; secret: boolean }>>;

const auditTable = tableTouching("audit");

export const audit_logs = auditTable(
  "audit_logs",
  {
    /** In the order of commits: tells apart what happened in the same millisecond. */
    key: integer().primaryKey(),
    id: text().notNull().unique(),
    time: integer().notNull(),
    organization_id: text(),
    /** Null: the server itself, or a stranger. */
    user_id: text(),
    ip: text(),
    user_agent: text().notNull(),
    action: text().$type<AuditAction>().notNull(),
    resource_type: text().$type<ResourceType>().notNull(),
    resource_id: text().notNull(),
    resource_target: text().notNull(),
    resource_icon: text().notNull().default(""),
    /** The workspace that it belongs to, or is. */
    workspace_id: text(),
    build_reason: text().notNull().default(""),
    diff: text({ mode: "json" }).$type<AuditDiff>().notNull(),
    additional_fields: text({ mode: "json" }).$type<Readonly<Record<string, unknown>>>().notNull(),
    status_code: integer().notNull(),
    request_id: text().notNull(),
  },
  // Each ends with the order of the list. Kind and reason stand before it wherever one may ask for them with something else, so that what
  // is often there but never together is not looked for entry by entry (db/reports/audit/plan.ts).
  (table) => [
    index("audit_logs_time").on(table.time),
    index("audit_logs_kind").on(table.resource_type, table.action, table.build_reason, table.time),
    index("audit_logs_organization").on(
      ...[table.organization_id, table.resource_type, table.action, table.build_reason, table.time],
    ),
    index("audit_logs_user").on(
      ...[table.user_id, table.organization_id, table.resource_type, table.action, table.build_reason, table.time],
    ),
    index("audit_logs_resource").on(table.resource_id, table.time),
    // Many things may have one name: whatever else is asked for stands behind the time, so that no row is looked at for it.
    index("audit_logs_target").on(
      ...[sql`lower(${table.resource_target})`, table.time, table.user_id, table.organization_id],
      ...[table.resource_type, table.action, table.build_reason],
    ),
    index("audit_logs_request").on(table.request_id, table.time),
  ],
);
