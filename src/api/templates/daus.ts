// How many people used a template's workspaces on each of the last days (facts/platform 6.2). What is known is when each workspace was
// last used, so a day counts those for whom it was the last; the reports of insights will know more.
import { Elysia, t } from "elysia";
import { AppError, forbidden } from "#base/errors.ts";
import { listUses } from "#db/templates.ts";
import { PREBUILDS_USER_ID } from "#schema/prebuilds.ts";
import { mayManageTemplates, mayReadAudit } from "../access.ts";
import { callers } from "../caller.ts";
import type { ApiContext } from "../context.ts";
import { fails } from "../responses.ts";
import { templateAt, templatePath } from "./template.ts";

const DAYS = 60;
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

export const templateDaus = (ctx: ApiContext) =>
  new Elysia({ prefix: "/templates" }).use(callers).get(
    "/:template/daus",
    async ({ caller, params, query }) => {
      const { template } = await templateAt(ctx, params.template, caller);
      const { organization_id, id } = template;
      if (!mayManageTemplates(caller, organization_id) && !mayReadAudit(caller, organization_id)) {
        throw forbidden("Only those who look after templates, and auditors, see how they are used.");
      }
      const tz_hour_offset = offsetOf(query.tz_offset, caller.compat);
      const shift = tz_hour_offset * HOUR_MS;
      const today = Math.floor((ctx.clock.now() + shift) / DAY_MS);
      const first = today - DAYS;
      const since = first * DAY_MS - shift;
      const uses = await ctx.store.scan(listUses({ id, since, except: PREBUILDS_USER_ID }));
      const days = Map.groupBy(uses, ({ at }) => Math.floor((at + shift) / DAY_MS));
      const entries = Array.from({ length: DAYS + 1 }, (_, i) => ({
        date: new Date((first + i) * DAY_MS).toISOString().slice(0, 10),
        amount: new Set(days.get(first + i)?.map(({ owner_id }) => owner_id)).size,
      }));
      return { entries, tz_hour_offset };
    },
    {
      user: true,
      params: templatePath,
      query: t.Object({
        tz_offset: t.Optional(t.String({ description: "Whole hours from UTC, -12 to 14; a day begins there." })),
      }),
      response: {
        200: t.Object({
          entries: t.Array(t.Object({ date: t.String({ format: "date" }), amount: t.Integer() })),
          tz_hour_offset: t.Integer(),
        }),
        ...fails(400, 401, 403, 404, 503),
      },
      detail: {
        tags: ["Templates"],
        summary: "People who used a template, by day",
        description: "One entry a day from 60 days ago to today. Counted on the day each workspace was last used.",
      },
    },
  );

/** Clients of the upstream kind may leave it out. */
const offsetOf = (text: string | undefined, compat: boolean): number => {
  if (text === undefined && compat) return 0;
  const hours = text !== undefined && /^[+-]?\d{1,2}$/.test(text) ? Number(text) : Number.NaN;
  if (hours >= -12 && hours <= 14) return hours;
  throw new AppError("invalid", "Query parameters have invalid values.", {
    validations: [{ field: "tz_offset", detail: "must be a whole number of hours from -12 to 14" }],
  });
};
