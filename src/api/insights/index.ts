// Usage reports (spec, "Insights endpoints"; facts/platform 6.2). actors/usage collects the data; reader Workers compute the reports one at
// a time.
import { t } from "elysia";
import { forbidden } from "#base/errors.ts";
import { canReadAllUsers, canReadAudit } from "#domain/access.ts";
import { jsonResponse, loadDaus, parseDayOffset } from "#domain/insights/daus.ts";
import { listEdges, parseRange } from "#domain/insights/range.ts";
import { loadStatusCounts, parseZone } from "#domain/insights/status-counts.ts";
import { invalidQuery } from "#domain/insights/zones.ts";
import { DailyUsers, TemplateInsights, UserActivity, UserLatency, UserStatusCounts } from "#schema/insights.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { textQuery } from "../http/query.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { insightFigures } from "./figures.ts";
import { interval, parseInterval, rangeQuery, tzOffset } from "./query.ts";
import { parseList, rejectUnknownParameters, resolveTemplates } from "./who.ts";

const tags = ["Insights"];

const SECTIONS = ["interval_reports", "report"];
const templatesQuery = {
  ...rangeQuery,
  interval,
  sections: textQuery("The sections of the report to return: interval_reports, report. Default: both.", {
    type: "array",
    items: { type: "string" },
  }),
};

const parseSections = (request: Request): string[] => {
  const sections = parseList(request, "sections");
  if (!sections.every((one) => SECTIONS.includes(one))) {
    throw invalidQuery("sections", `must be of ${SECTIONS.join(", ")}`);
  }
  return sections.length > 0 ? sections : SECTIONS;
};

/** Returns a report over a time range. As everywhere, the query is validated before access is checked. */
const loadRangeReport = async (
  ctx: ApiContext,
  name: "user_activity" | "user_latency",
  reportRequest: ReportRequest,
) => {
  const { caller, request, query } = reportRequest;
  rejectUnknownParameters(request, rangeQuery);
  const range = parseRange(query, ctx.clock.now());
  const templates = await resolveTemplates(ctx, request, caller);
  return jsonResponse(await ctx.usage.report(name, { ...range, templates }));
};
type ReportRequest = { caller: UserCaller; request: Request; query: { start_time?: string; end_time?: string } };

export const insights = (ctx: ApiContext) =>
  routes({ prefix: "/insights" })
    .use(callers)
    .use(insightFigures(ctx))
    .get(
      "/daus",
      ({ caller, request, query }) => {
        if (!canReadAudit(caller)) throw forbidden("Only owners and auditors can see how the deployment is used.");
        rejectUnknownParameters(request, { tz_offset: true });
        return loadDaus(ctx, { hours: parseDayOffset(query.tz_offset, caller) });
      },
      {
        user: true,
        query: t.Object({
          tz_offset: tzOffset,
        }),
        response: { 200: DailyUsers, ...fails(400, 401, 403, 503) },
        detail: operation({
          tags,
          operationId: "getDailyUsers",
          summary: "Get daily active users",
          description: "Returns one entry per day, from 60 days ago to today.",
          access: "admins",
          scope: "template:view_insights",
        }),
      },
    )
    .get(
      "/templates",
      async ({ caller, request, query }) => {
        rejectUnknownParameters(request, templatesQuery);
        const range = parseRange(query, ctx.clock.now());
        const interval = parseInterval(query.interval, caller);
        const sections = parseSections(request);
        const edges = interval && listEdges(range, interval);
        const templates = await resolveTemplates(ctx, request, caller);
        return jsonResponse(await ctx.usage.report("templates", { ...range, templates, interval, edges, sections }));
      },
      {
        user: true,
        query: t.Object(templatesQuery),
        response: { 200: TemplateInsights, ...fails(400, 401, 403, 404, 503) },
        detail: operation({
          tags,
          operationId: "getTemplateInsights",
          summary: "Get template insights",
          description:
            "Returns active users by day or week and in total, the use of apps in seconds and times, and the parameter values of the newest builds. Requires access to the insights of every requested template.",
          access: "admins",
          scope: "template:view_insights",
        }),
      },
    )
    .get(
      "/user-activity",
      ({ caller, request, query }) => loadRangeReport(ctx, "user_activity", { caller, request, query }),
      {
        user: true,
        query: t.Object(rangeQuery),
        response: { 200: UserActivity, ...fails(400, 401, 403, 404, 503) },
        detail: operation({
          tags,
          operationId: "getUserActivity",
          summary: "Get user activity",
          description:
            "Returns the active time of users. Each minute counts once, regardless of how many apps were used. Inactive users are omitted.",
          access: "admins",
          scope: "template:view_insights",
        }),
      },
    )
    .get(
      "/user-latency",
      ({ caller, request, query }) => loadRangeReport(ctx, "user_latency", { caller, request, query }),
      {
        user: true,
        query: t.Object(rangeQuery),
        response: { 200: UserLatency, ...fails(400, 401, 403, 404, 503) },
        detail: operation({
          tags,
          operationId: "getUserLatency",
          summary: "Get user latency",
          description:
            "Returns percentiles over the medians of half hours, in milliseconds; -1 if nothing was measured.",
          access: "admins",
          scope: "template:view_insights",
        }),
      },
    )
    .get(
      "/user-status-counts",
      ({ caller, request, query }) => {
        if (!canReadAllUsers(caller)) throw forbidden("Only people who can see all users can see their statuses.");
        rejectUnknownParameters(request, { timezone: true, tz_offset: true });
        return loadStatusCounts(ctx, parseZone(query));
      },
      {
        user: true,
        query: t.Object({
          timezone: t.Optional(t.String({ maxLength: 100, description: "An IANA time zone, such as Europe/Berlin." })),
          tz_offset: textQuery("Deprecated: use `timezone`. Hours from UTC, -12 to 14.", { type: "integer" }),
        }),
        response: { 200: UserStatusCounts, ...fails(400, 401, 403, 503) },
        detail: operation({
          tags,
          operationId: "getUserStatusCounts",
          summary: "Get user status counts",
          description:
            "Returns the counts at the beginning of each day from 60 days ago to today, and at the next full hour. Days follow the daylight saving time of the zone; with an offset, they have 24 hours.",
          access: "admins",
          scope: "template:view_insights",
        }),
      },
    );
