// Query parameters of the reports over a time range.
import type { Interval } from "#domain/insights/range.ts";
import { invalidQuery } from "#domain/insights/zones.ts";
import type { UserCaller } from "../http/caller.ts";
import { type DocumentedType, textQuery } from "../http/query.ts";

const time = (example: string): DocumentedType => ({ type: "string", format: "date-time", required: true, example });

// Text that is validated by hand: Elysia would report invalid values without the parameter's name, and ignore unknown parameters.
export const rangeQuery = {
  start_time: textQuery("RFC 3339, at 00:00:00; its offset says where days begin.", time("2025-01-06T00:00:00Z")),
  end_time: textQuery(
    "RFC 3339, at 00:00:00 or at a full hour of today, with the offset of the same time zone.",
    time("2025-01-13T00:00:00Z"),
  ),
  template_ids: textQuery("Repeated, or separated by commas. Default: all templates.", {
    type: "array",
    items: { type: "string", format: "uuid" },
  }),
};

export const interval = textQuery("The length of a row.", { type: "string", enum: ["day", "week"], required: true });

/** For daily reports without a time zone. */
export const tzOffset = textQuery("Whole hours from UTC, -12 to 14; a day begins there.", {
  type: "integer",
  required: true,
});

/** Upstream clients may omit the interval. */
export const parseInterval = (text: string | undefined, { compat }: UserCaller): Interval | undefined => {
  if (text === "day" || text === "week") return text;
  if (compat && !text) return undefined;
  throw invalidQuery("interval", text ? "must be day or week" : "is required");
};
