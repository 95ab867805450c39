// Wire shapes of usage reports (spec, "Insights endpoints").
import { type Static, Type as t } from "@sinclair/typebox";
import { avatarUrl, iconUrl, modelSpend, time, uuid } from "./fields.ts";
import { named, namedObject } from "./shape-names.ts";

const startTime = time("The beginning of the period.");
const endTime = time("The end of the period, exclusive.");
const ids = t.Array(uuid(), { description: "The IDs of the templates that were used." });

export const DailyUsers = namedObject("DailyUsers", {
  entries: t.Array(
    t.Object({
      amount: t.Integer({ description: "The number of distinct users." }),
      date: t.String({ format: "date", description: "The day, in the requested time zone offset." }),
    }),
    { description: "One entry for each of the last days, oldest first. Days without users are included." },
  ),
  tz_hour_offset: t.Number({ description: "The requested time zone offset, in hours; a multiple of 0.25." }),
});

const AppUsage = namedObject("AppUsage", {
  display_name: t.String(),
  icon: iconUrl,
  seconds: t.Integer({ description: "How long the app was used by all users together, in seconds." }),
  slug: t.String({ description: "The slug of the app; for built-in ones, such as `vscode` or `ssh`." }),
  template_ids: ids,
  times_used: t.Integer({ description: "The number of uses. Consecutive half hours count as one." }),
  type: t.String({ description: "The type of the app: `builtin` or `app`." }),
});

const ParameterUsage = namedObject("ParameterUsage", {
  description: t.String(),
  display_name: t.String(),
  name: t.String({ description: "The name of the parameter." }),
  options: t.Array(t.Object({ description: t.String(), icon: iconUrl, name: t.String(), value: t.String() }), {
    description: "The options that the template offers; empty if any value is allowed.",
  }),
  template_ids: ids,
  type: t.String({ description: "The type of the value: string, number, bool or list(string)." }),
  values: t.Array(
    t.Object({ count: t.Integer({ description: "The number of workspaces with this value." }), value: t.String() }),
    { description: "The values that workspaces use." },
  ),
});

const activeUsers = t.Integer({ description: "The number of distinct users who used a workspace." });

/** Contains only the sections that the client requested. */
export const TemplateInsights = namedObject("TemplateInsights", {
  interval_reports: t.Optional(
    t.Array(
      t.Object({
        active_users: activeUsers,
        end_time: endTime,
        interval: t.String({ description: "The length of the interval: `day` or `week`." }),
        start_time: startTime,
        template_ids: ids,
      }),
      { description: "The usage by interval, oldest first; absent if `sections` omits it." },
    ),
  ),
  report: t.Optional(
    t.Object({
      active_users: activeUsers,
      apps_usage: t.Array(AppUsage, {
        description: "The built-in apps, also unused ones, and then the apps of templates.",
      }),
      end_time: endTime,
      parameters_usage: t.Array(ParameterUsage, {
        description: "The parameters of workspaces that were built in the period.",
      }),
      start_time: startTime,
      template_ids: ids,
    }),
  ),
});
export type TemplateInsights = Static<typeof TemplateInsights>;

const person = {
  avatar_url: avatarUrl,
  template_ids: ids,
  user_id: uuid(),
  username: t.String(),
};
const userReport = <T extends Parameters<typeof t.Object>[0]>(fields: T) =>
  t.Object({
    report: t.Object({
      end_time: endTime,
      start_time: startTime,
      template_ids: ids,
      users: t.Array(t.Object({ ...person, ...fields })),
    }),
  });

export const UserActivity = named(
  "UserActivity",
  userReport({
    seconds: t.Integer({ description: "How long the user used workspaces, in seconds. Parallel use counts once." }),
  }),
);

export const UserLatency = named(
  "UserLatency",
  userReport({
    latency_ms: t.Object({
      p50: t.Number({ description: "The median latency in milliseconds; -1 if nothing was measured." }),
      p95: t.Number({ description: "The 95th percentile in milliseconds; -1 if nothing was measured." }),
    }),
  }),
);
export type UserLatency = Static<typeof UserLatency>;
export type UserActivity = Static<typeof UserActivity>;

export const UserStatusCounts = namedObject("UserStatusCounts", {
  status_counts: t.Record(
    t.String(),
    t.Array(
      t.Object({
        count: t.Integer({ description: "The number of users with the status at that time." }),
        date: time(),
      }),
    ),
    {
      description: "The counts by status: `active`, `dormant` and `suspended`.",
    },
  ),
});

const buildFigures = {
  builds: t.Integer({ description: "The number of completed builds that started a workspace, including failed ones." }),
  failed: t.Integer({ description: "The number of builds that failed." }),
  canceled: t.Integer({ description: "The number of builds that were canceled." }),
  p50_ms: t.Union([t.Integer(), t.Null()], {
    description:
      "The median duration of successful builds, from the start to the end of the job, in milliseconds; null if no build succeeded.",
  }),
  p95_ms: t.Union([t.Integer(), t.Null()], {
    description: "The 95th percentile of the same durations, in milliseconds; null if no build succeeded.",
  }),
};

export const BuildInsights = namedObject("BuildInsights", {
  report: t.Object({
    start_time: startTime,
    end_time: endTime,
    ...buildFigures,
    intervals: t.Array(t.Object({ start_time: startTime, end_time: endTime, ...buildFigures })),
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

const chatCounts = {
  users: t.Integer({ description: "The number of distinct owners of chats with model calls." }),
  chats: t.Integer({ description: "The number of distinct root chats." }),
};

export const ChatInsights = namedObject("ChatInsights", {
  report: t.Object({
    start_time: startTime,
    end_time: endTime,
    ...chatCounts,
    ...modelSpend,
    intervals: t.Array(t.Object({ start_time: startTime, end_time: endTime, ...chatCounts, ...modelSpend })),
    models: t.Array(
      t.Object({
        model_config_id: t.String({ description: "The ID of the model configuration." }),
        model: t.String({ description: "The provider's name for the model; may be empty." }),
        display_name: t.String({ description: "The display name of the model; empty if the model was deleted." }),
        ...modelSpend,
        intervals: t.Array(
          t.Object({
            tokens: t.Integer({ description: "The number of tokens of all kinds." }),
            total_cost_micros: modelSpend.total_cost_micros,
          }),
          { description: "One entry for each interval of the report." },
        ),
      }),
      { description: "Figures by model, sorted by number of tokens, highest first." },
    ),
  }),
});
export type ChatInsights = Static<typeof ChatInsights>;
