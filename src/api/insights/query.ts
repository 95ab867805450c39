// What the reports of a range are asked for.
import { t } from "elysia";
import type { Interval } from "#domain/insights/range.ts";
import { wrongQuery } from "#domain/insights/zones.ts";
import type { UserCaller } from "../http/caller.ts";

// Texts, checked by hand: Elysia would report wrong ones without their names, and unknown ones not at all.
export const rangeQuery = {
  start_time: t.Optional(
    t.String({ description: "Required. RFC 3339, at 00:00:00; its offset says where days begin." }),
  ),
  end_time: t.Optional(
    t.String({ description: "Required. RFC 3339 with the same offset, at 00:00:00 or at a full hour of today." }),
  ),
  template_ids: t.Optional(t.String({ description: "Ids with commas between them, or repeated; all without it." })),
};

export const interval = t.Optional(t.String({ description: "Required. day or week." }));

/** Clients of the upstream kind may ask for no intervals. */
export const intervalOf = (text: string | undefined, { compat }: UserCaller): Interval | undefined => {
  if (text === "day" || text === "week") return text;
  if (compat && !text) return undefined;
  throw wrongQuery("interval", text ? "must be day or week" : "is required");
};
