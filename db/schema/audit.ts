// Who changed what, when and from where. Written in the same batch as the change (db/reports/audit/audit.ts) and never changed; deleted
// only by retention (actors/audit/retention.ts). References nothing: an entry outlives its entity.
import { sql } from "drizzle-orm";
import { index, integer, text } from "drizzle-orm/sqlite-core";
import type { AuditAction, ResourceType } from "#schema/audit.ts";
import { declareTable } from "./cache-dependencies.ts";

/** The old and the new value of each changed field. Secrets have no values. */
export type AuditDiff = Readonly<Record<string, { old: unknown; new: unknown; secret: boolean }>>;

const auditTable = declareTable("audit");

export const audit_logs = auditTable(
  "audit_logs",
  {
    /** In commit order, which distinguishes events of the same millisecond. */
    key: integer().primaryKey(),
    id: text().notNull().unique(),
    time: integer().notNull(),
    organization_id: text(),
    /** Null: the server itself, or an anonymous client. */
    user_id: text(),
    ip: text(),
    user_agent: text().notNull(),
    action: text().$type<AuditAction>().notNull(),
    resource_type: text().$type<ResourceType>().notNull(),
    resource_id: text().notNull(),
    resource_target: text().notNull(),
    resource_icon: text().notNull().default(""),
    /** The workspace that the resource is or belongs to. */
    workspace_id: text(),
    build_reason: text().notNull().default(""),
    diff: text({ mode: "json" }).$type<AuditDiff>().notNull(),
    additional_fields: text({ mode: "json" }).$type<Readonly<Record<string, unknown>>>().notNull(),
    status_code: integer().notNull(),
    request_id: text().notNull(),
  },
  // Each index ends with the list's order. Kind and reason precede it where a query can combine them with another condition, so that two
  // frequent values that never occur together are not searched for entry by entry (db/reports/audit/plan.ts).
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
    // Many entities can share a name, so the index contains all other conditions after the time, and no row is read to check them.
    index("audit_logs_target").on(
      ...[sql`lower(${table.resource_target})`, table.time, table.user_id, table.organization_id],
      ...[table.resource_type, table.action, table.build_reason],
    ),
    index("audit_logs_request").on(table.request_id, table.time),
  ],
);
