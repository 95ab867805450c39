// Wire shapes of usage reports (spec, "Insights endpoints").
import { type Static, Type as t } from "@sinclair/typebox";
import { time, uuid } from "./fields.ts";
import { named, namedObject } from "./shape-names.ts";

const ids = t.Array(uuid(), { description: "The IDs of the templates that were used." });

export const Daus = namedObject("DailyUsers", {
  entries: t.Array(
    t.Object({
      amount: t.Integer({ description: "The number of distinct users." }),
      date: t.String({ format: "date", description: "The day, in the requested time zone offset." }),
    }),
  ),
  tz_hour_offset: t.Number({ description: "The requested time zone offset, in hours or quarter hours." }),
});

const AppUsage = namedObject("AppUsage", {
  display_name: t.String(),
  icon: t.String(),
  seconds: t.Integer(),
  slug: t.String(),
  template_ids: ids,
  times_used: t.Integer({ description: "The number of uses. Consecutive half hours count as one." }),
  type: t.String({ description: "The type of the app: `builtin` or `app`." }),
});

const ParameterUsage = namedObject("ParameterUsage", {
  description: t.String(),
  display_name: t.String(),
  name: t.String(),
  options: t.Array(t.Object({ description: t.String(), icon: t.String(), name: t.String(), value: t.String() })),
  template_ids: ids,
  type: t.String(),
  values: t.Array(
    t.Object({ count: t.Integer({ description: "The number of workspaces with this value." }), value: t.String() }),
  ),
});

/** Upstream clients can omit sections. */
export const TemplateInsights = namedObject("TemplateInsights", {
  interval_reports: t.Optional(
    t.Array(
      t.Object({
        active_users: t.Integer(),
        end_time: time(),
        interval: t.String({ description: "The length of the interval: `day` or `week`." }),
        start_time: time(),
        template_ids: ids,
      }),
    ),
  ),
  report: t.Optional(
    t.Object({
      active_users: t.Integer(),
      apps_usage: t.Array(AppUsage),
      end_time: time(),
      parameters_usage: t.Array(ParameterUsage),
      start_time: time(),
      template_ids: ids,
    }),
  ),
});
export type TemplateInsights = Static<typeof TemplateInsights>;

const person = {
  avatar_url: t.String(),
  template_ids: ids,
  user_id: uuid(),
  username: t.String(),
};
const userReport = <T extends Parameters<typeof t.Object>[0]>(fields: T) =>
  t.Object({
    report: t.Object({
      end_time: time(),
      start_time: time(),
      template_ids: ids,
      users: t.Array(t.Object({ ...person, ...fields })),
    }),
  });

export const UserActivity = named("UserActivity", userReport({ seconds: t.Integer() }));

export const UserLatency = named(
  "UserLatency",
  userReport({
    latency_ms: t.Object({
      p50: t.Number({ description: "The median latency in milliseconds; -1 if nothing was measured." }),
      p95: t.Number(),
    }),
  }),
);
export type UserLatency = Static<typeof UserLatency>;
export type UserActivity = Static<typeof UserActivity>;

export const UserStatusCounts = namedObject("UserStatusCounts", {
  status_counts: t.Record(t.String(), t.Array(t.Object({ count: t.Integer(), date: time() })), {
    description: "The counts by status: `active`, `dormant` and `suspended`.",
  }),
});

const buildFigures = {
  builds: t.Integer({ description: "The number of completed builds that started a workspace, including failed ones." }),
  failed: t.Integer(),
  canceled: t.Integer(),
  p50_ms: t.Union([t.Integer(), t.Null()], {
    description:
      "The median duration of successful builds, from the start to the end of the job, in milliseconds; null if no build succeeded.",
  }),
  p95_ms: t.Union([t.Integer(), t.Null()]),
};

export const BuildInsights = namedObject("BuildInsights", {
  report: t.Object({
    start_time: time(),
    end_time: time(),
    ...buildFigures,
    intervals: t.Array(t.Object({ start_time: time(), end_time: time(), ...buildFigures })),
    templates: t.Array(
      t.Object({
        template_id: uuid(),
        name: t.String(),
        display_name: t.String(),
        ...buildFigures,
      }),
      { description: "Figures for templates with at least one build, sorted by name." },
    ),
  }),
});
export type BuildInsights = Static<typeof BuildInsights>;

const spendFigures = {
  total_cost_micros: t.Integer({ description: "The total cost in millionths of a US dollar, of calls with a price." }),
  request_count: t.Integer({ description: "The number of model calls that reported their usage." }),
  unpriced_request_count: t.Integer({
    description: "The number of calls whose model had no price. They are not included in any sum.",
  }),
  input_tokens: t.Integer({
    description: "The number of input tokens, excluding tokens read from or written to a cache.",
  }),
  output_tokens: t.Integer(),
  cache_read_tokens: t.Integer(),
  cache_creation_tokens: t.Integer(),
};
const people = {
  users: t.Integer({ description: "The number of distinct owners of chats with model calls." }),
  chats: t.Integer({ description: "The number of distinct root chats." }),
};

export const ChatInsights = namedObject("ChatInsights", {
  report: t.Object({
    start_time: time(),
    end_time: time(),
    ...people,
    ...spendFigures,
    intervals: t.Array(t.Object({ start_time: time(), end_time: time(), ...people, ...spendFigures })),
    models: t.Array(
      t.Object({
        model_config_id: t.String(),
        model: t.String(),
        display_name: t.String({ description: "The display name of the model; empty if the model was deleted." }),
        ...spendFigures,
        intervals: t.Array(
          t.Object({
            tokens: t.Integer({ description: "The number of tokens of all kinds." }),
            total_cost_micros: t.Integer(),
          }),
          { description: "One entry for each interval of the report." },
        ),
      }),
      { description: "Figures by model, sorted by number of tokens, highest first." },
    ),
  }),
});
export type ChatInsights = Static<typeof ChatInsights>;
