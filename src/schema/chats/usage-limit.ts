// Wire shapes of spend limits per day, week or month (facts/agents D 60 to 62). Micros are millionths of a US dollar.
import { type Static, Type as t } from "@sinclair/typebox";
import { avatarUrl, optionalTime, time, uuid } from "../fields.ts";
import { Generic } from "../generic.ts";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";
import { strictObject } from "../strict.ts";

/** In UTC; weeks begin on Monday. */
export const USAGE_PERIODS = ["day", "week", "month"] as const;
export type UsagePeriod = (typeof USAGE_PERIODS)[number];

/** A billion dollars. */
const MAX_LIMIT_MICROS = 1_000_000_000_000_000;

const period = () => oneOf(USAGE_PERIODS, "The period of the limits, in UTC. Weeks begin on Monday.");
const limit = (minimum: number, description: string) => t.Integer({ minimum, maximum: MAX_LIMIT_MICROS, description });
const OWN_LIMIT = "The limit for each period, in millionths of a US dollar.";
const defaultSpendLimit = () =>
  t.Union([t.Integer({ minimum: 0, maximum: MAX_LIMIT_MICROS }), t.Null()], {
    description:
      "The limit of users without a limit of their own or of a group, in millionths of a US dollar. 0 allows no usage; null means no limit.",
  });

export const PutUsageLimits = named(
  "PutUsageLimits",
  strictObject({ spend_limit_micros: defaultSpendLimit(), period: period() }),
);
export const PutLimit = named("PutLimit", strictObject({ spend_limit_micros: limit(1, OWN_LIMIT) }));

export const UsageLimits = namedObject("UsageLimits", {
  spend_limit_micros: defaultSpendLimit(),
  period: period(),
  updated_at: t.Union([time(), t.Null()], {
    description: "When the limits were last updated; null if they have never been set.",
  }),
  unpriced_model_count: t.Integer({
    description: "The number of enabled models without a price. Their cost is not included in sums.",
  }),
  overrides: t.Array(
    t.Object({
      user_id: uuid(),
      username: t.String(),
      name: t.String(),
      avatar_url: avatarUrl,
      spend_limit_micros: t.Integer({ description: OWN_LIMIT }),
    }),
    { description: "The limits of individual users." },
  ),
  group_overrides: t.Array(
    t.Object({
      group_id: uuid("The ID of the group, or of an organization for the group of all its members."),
      group_name: t.String({ description: "The name of the group or organization." }),
      group_display_name: t.String(),
      spend_limit_micros: t.Integer({ description: OWN_LIMIT }),
    }),
    { description: "Limits that apply to each member of a group." },
  ),
});
export type UsageLimits = Static<typeof UsageLimits>;

export const UsageLimitStatus = namedObject("UsageLimitStatus", {
  is_limited: t.Boolean({ description: "Whether a spend limit applies to the user." }),
  period: period(),
  spend_limit_micros: t.Union([t.Integer(), t.Null()], {
    description:
      "The user's spend limit in millionths of a US dollar, including amounts added for this period; null if there is no limit.",
  }),
  current_spend: t.Integer({ description: "The amount spent in this period, in millionths of a US dollar." }),
  period_start: time("The beginning of the period."),
  period_end: time("The end of the period, exclusive."),
});
export type UsageLimitStatus = Static<typeof UsageLimitStatus>;

/** The body of a 409. The members about a spend limit are set only if a limit is reached. */
export const LimitReached = namedObject(
  "LimitReached",
  {
    ...Generic.properties,
    spent_micros: t.Optional(
      t.Integer({
        description: "The amount spent in this period, in millionths of a US dollar. Only for the kind `usage_limit`.",
      }),
    ),
    limit_micros: t.Optional(
      t.Integer({
        description: "The limit for this period, in millionths of a US dollar. Only for the kind `usage_limit`.",
      }),
    ),
    resets_at: optionalTime("When the next period begins. Only for the kind `usage_limit`."),
  },
  { description: "The request conflicts with the current state, or the spend limit is reached." },
);
