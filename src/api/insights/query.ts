// Query parameters of the reports over a time range.
import type { Interval } from "#domain/insights/range.ts";
import { invalidQuery } from "#domain/insights/zones.ts";
import type { UserCaller } from "../http/caller.ts";
import { type DocumentedType, textQuery } from "../http/query.ts";

const toTimeType = (example: string): DocumentedType => ({
  type: "string",
  format: "date-time",
  required: true,
  example,
});

// Text that is validated by hand: Elysia would report invalid values without the parameter's name, and ignore unknown parameters.
export const rangeQuery = {
  start_time: textQuery(
    "The start of the range: an RFC 3339 time at 00:00:00, whose offset determines when days begin.",
    toTimeType("2025-01-06T00:00:00Z"),
  ),
  end_time: textQuery(
    "The end of the range: an RFC 3339 time at 00:00:00 or at a full hour of today, with the offset of the same time zone.",
    toTimeType("2025-01-13T00:00:00Z"),
  ),
  template_ids: textQuery("The IDs of templates, repeated or comma-separated. Default: all templates.", {
    type: "array",
    items: { type: "string", format: "uuid" },
  }),
};

export const interval = textQuery("The length of each interval.", {
  type: "string",
  enum: ["day", "week"],
  required: true,
});

/** For daily reports without a time zone. */
export const tzOffset = textQuery("Whole hours from UTC, -12 to 14. Determines when days begin.", {
  type: "integer",
  required: true,
});

/** Upstream clients may omit the interval. */
export const parseInterval = (text: string | undefined, { compat }: UserCaller): Interval | undefined => {
  if (text === "day" || text === "week") return text;
  if (compat && !text) return undefined;
  throw invalidQuery("interval", text ? "must be day or week" : "is required");
};
