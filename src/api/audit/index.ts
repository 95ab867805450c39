// The audit log: a searchable list, the same as a file, and the retention period. For owners and auditors; administrators of an
// organization see its entries (facts/platform 3.8 and 7). No route can change an entry.
import { t } from "elysia";
import { invalid, invalidField } from "#base/errors.ts";
import { MAX_AUDIT_COUNT } from "#db/reports/audit/find.ts";
import { findAuditCursor, listAudit } from "#db/reports/audit/search.ts";
import { readAuditRetention } from "#db/reports/audit/settings.ts";
import { listAuditedOrganizations, parseAuditFilter } from "#domain/audit/query.ts";
import { setAuditRetention } from "#domain/audit/retention.ts";
import { presentEntries } from "#domain/audit/visible-entries.ts";
import { AuditLog, AuditLogs, AuditRetention } from "#schema/audit.ts";
import { openFeed } from "../administration/feed.ts";
import * as setting from "../audit/setting-targets.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { pageQuery, toPage } from "../http/paging.ts";
import { documentAs } from "../http/query.ts";
import { fails, Upgraded } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { EXPORT_FORMATS, exportAudit, type Format } from "./export.ts";
import { auditAccess, followAudit } from "./watch.ts";

const tags = ["Audit"];
const user = true;
const q = t.Optional(
  t.String({
    maxLength: 2000,
    description:
      "A search query: a resource type as a word, and `key:value` terms. Keys: resource_type, action, resource_id, resource_target, request_id, username (or `me`), email, organization, build_reason, date_from, date_to.",
  }),
);

const CONTENT_TYPES: Readonly<Record<Format, string>> = { ndjson: "application/x-ndjson", csv: "text/csv" };

const parseFormat = (text = "ndjson"): Format => {
  const found = EXPORT_FORMATS.find((one) => one === text);
  if (!found) throw invalidField("format", `must be one of ${EXPORT_FORMATS.join(", ")}`);
  return found;
};

export const audit = (ctx: ApiContext) =>
  routes({ prefix: "/audit" })
    .use(callers)
    .get(
      "",
      async ({ caller, query }) => {
        listAuditedOrganizations(caller);
        if (query.limit === undefined && !caller.compat) {
          throw invalid("Query parameters have invalid values.", [{ field: "limit", detail: "is required" }]);
        }
        const page = toPage(query);
        const filter = await parseAuditFilter(ctx.store, query.q ?? "", caller);
        await ctx.refused.flush();
        const cursor = query.after_id && (await ctx.store.get(findAuditCursor({ id: query.after_id.toLowerCase() })));
        if (query.after_id && !cursor) throw invalidField("after_id", "There is no entry with this id.");
        const { rows, count } = await listAudit(ctx.store, {
          filter,
          ...page,
          ...(cursor && { cursor }),
          counted: true,
        });
        return { audit_logs: await presentEntries(ctx, caller, rows), count, count_cap: MAX_AUDIT_COUNT };
      },
      {
        user,
        query: t.Object({
          q,
          offset: pageQuery.offset,
          after_id: pageQuery.after_id,
          limit: documentAs(
            { type: "integer", required: true },
            t.Integer({ description: "The maximum number of entries to return; 0 returns all, up to 10,000." }),
          ),
        }),
        response: { 200: AuditLogs, ...fails(400, 401, 403, 503) },
        detail: operation({
          tags,
          operationId: "listAuditLogs",
          summary: "List audit log entries",
          description:
            "Returns entries, newest first, including rejected changes with their response status. `after_id` continues after the last entry of a page and is fast at any depth; `offset` counts from the newest entry.",
          access: "admins",
          scope: "audit_log:read",
        }),
      },
    )
    .get(
      "/export",
      async ({ caller, query }) => {
        const filter = await parseAuditFilter(ctx.store, query.q ?? "", caller);
        const format = parseFormat(query.format);
        await ctx.refused.flush();
        return new Response(exportAudit(ctx, filter, caller, format), {
          headers: {
            "content-type": `${CONTENT_TYPES[format]}; charset=utf-8`,
            "content-disposition": `attachment; filename="audit.${format}"`,
          },
        });
      },
      {
        user,
        query: t.Object({
          q,
          format: t.Optional(t.String({ description: "The format: `ndjson` (default), or `csv` for spreadsheets." })),
        }),
        detail: operation({
          tags,
          operationId: "exportAuditLogs",
          summary: "Export the audit log",
          description: "Returns all matching entries, newest first, as JSON lines or CSV.",
          answers: ["application/x-ndjson", "text/csv"],
          access: "admins",
          scope: "audit_log:read",
        }),
        response: fails(400, 401, 403, 503),
      },
    )
    .get(
      "/watch",
      async ({ caller, query, request }) => {
        const filter = await parseAuditFilter(ctx.store, query.q ?? "", caller);
        const access = auditAccess(caller, listAuditedOrganizations(caller));
        const after = query.after_id && (await ctx.store.get(findAuditCursor({ id: query.after_id })))?.key;
        if (after === undefined && query.after_id) throw invalidField("after_id", "names no entry");
        return openFeed(ctx, caller, request, access, (auditFeed) =>
          followAudit(ctx, { caller, filter, after: after || undefined }, auditFeed),
        );
      },
      {
        user,
        query: t.Object({ q, after_id: pageQuery.after_id }),
        response: { 101: Upgraded, ...fails(400, 401, 403, 503) },
        detail: operation({
          tags,
          operationId: "watchAuditLogs",
          summary: "Watch the audit log",
          description:
            "A WebSocket of text messages. Each message is a list of new matching entries, oldest first. With `after_id`, starts after that entry. Without it, an empty list marks the start; use the list operation for earlier entries.",
          placement: "here",
          anywhere: true,
          sends: t.Array(AuditLog),
          access: "admins",
          scope: "audit_log:read",
        }),
      },
    )
    .get(
      "/retention",
      async ({ caller }) => {
        listAuditedOrganizations(caller);
        return readAuditRetention(ctx.store);
      },
      {
        user,
        response: { 200: AuditRetention, ...fails(401, 403) },
        detail: operation({
          tags,
          operationId: "getAuditRetention",
          summary: "Get the audit log retention",
          access: "admins",
          scope: "all",
        }),
      },
    )
    .put(
      "/retention",
      async ({ caller, body }) => {
        await setAuditRetention(ctx, caller, body);
        return body;
      },
      {
        user,
        body: AuditRetention,
        response: { 200: AuditRetention, ...fails(400, 401, 403, 413) },
        detail: operation({
          tags,
          operationId: "updateAuditRetention",
          summary: "Update the audit log retention",
          description:
            "Sets how many days entries are kept; 0 (default) keeps them forever. Older entries are deleted within an hour.",
          audit: target.writes(setting.settingTarget("audit_settings", "retention")),
          example: { days: 365, sign_in_days: 90, kinds: {} },
          access: "admins",
          scope: "all",
          outlivesGrant: true,
        }),
      },
    );
