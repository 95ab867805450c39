// Wire shapes of a workspace's schedule: time to live, autostart, extension and dormancy, and the log of activity that explains a deadline
// (facts/platform 2.6, 2.7 and 3.4).
import { type Static, Type as t } from "@sinclair/typebox";
import { optionalTime, time, uuid } from "../fields.ts";
import { oneOf } from "../one-of.ts";
import { namedObject } from "../shape-names.ts";

const MINUTE_MS = 60_000;
const MAX_TTL_MS = 30 * 24 * 60 * MINUTE_MS;

/** Returns why this is not a valid time to live in milliseconds; undefined if it is. */
export const findTtlProblem = (ttl: number): string | undefined => {
  if (!Number.isFinite(ttl) || ttl < MINUTE_MS) return "must be at least one minute";
  return ttl > MAX_TTL_MS ? "must be at most 30 days" : undefined;
};

/** Rounds milliseconds down to whole minutes; null for 0 or no value. */
export const roundTtl = (ttl: number | null | undefined): number | null =>
  ttl ? Math.trunc(ttl / MINUTE_MS) * MINUTE_MS : null;

/** The kinds of activity in a workspace (facts/platform 2.7). `app_traffic` marks the workspace as used, but does not move its deadline. */
export const USES = ["agent_stats", "usage", "terminal", "port_forward", "app_status", "app_traffic", "job"] as const;
export type Use = (typeof USES)[number];

/** The reasons in the log of activity: why a deadline was moved, or what the server did automatically. */
export const ACTIVITY_REASONS = [
  "start",
  "activity",
  "extend",
  "template",
  "ttl_off",
  "autostop",
  "owner_suspended",
  "autostart",
  "autostart_skipped",
  "failure",
  "dormancy",
  "wake",
  "autodelete",
] as const;
export type ActivityReason = (typeof ACTIVITY_REASONS)[number];

export const UpdateTtl = namedObject("UpdateTtl", {
  ttl_ms: t.Optional(
    t.Union([t.Integer(), t.Null()], {
      description:
        "The time until autostop in milliseconds, one minute to 30 days, rounded down to whole minutes. Absent, null or 0 turns autostop off.",
    }),
  ),
});
export const UpdateAutostart = namedObject("UpdateAutostart", {
  schedule: t.Optional(
    t.Union([t.String({ maxLength: 256 }), t.Null()], {
      description:
        "The autostart schedule, as `CRON_TZ=<zone> <minute> <hour> * * <days>`. Absent, null or empty removes it.",
    }),
  ),
});
export const ExtendWorkspace = namedObject("ExtendWorkspace", {
  deadline: time("The new deadline, at least 30 minutes from now."),
});
export const UpdateDormancy = namedObject("UpdateDormancy", {
  dormant: t.Optional(t.Boolean({ description: "Whether the workspace is dormant; default false." })),
});

export const WorkspaceActivity = namedObject("WorkspaceActivity", {
  next: t.Union(
    [
      t.Object({
        what: oneOf(
          ["stop", "start", "make_dormant", "delete"],
          "What the server will do. `make_dormant`: the workspace must be woken up before it can be used again.",
        ),
        at: time("When the action is due. In the past if it is about to happen."),
        why: t.String({ description: "The reason for the action, as a sentence." }),
      }),
      t.Null(),
    ],
    { description: "The next scheduled action, or null." },
  ),
  deadline: optionalTime("When the running workspace stops; absent if it isn't stopped automatically."),
  max_deadline: optionalTime("The latest deadline. Neither activity nor extensions move the deadline past it."),
  kept_by: t.Array(t.String({ description: "The name of the job or chat, such as `npm run build`." }), {
    description: "The active jobs and chats that keep the workspace running.",
  }),
  entries: t.Array(
    t.Object({
      at: time(),
      reason: oneOf(
        [...ACTIVITY_REASONS],
        "What happened. `activity`: the workspace was used. `extend`: a user moved the deadline. `template`: the template's schedule changed. `ttl_off`: autostop was turned off. `autostart_skipped`: an autostart was due but not possible. `failure`: a failed start was stopped. `wake`: the workspace is no longer dormant.",
      ),
      detail: t.String({ description: "A description of the event." }),
      actor: t.Object(
        {
          kind: oneOf(["user", "agent", "server"], "`agent`: the agent in the workspace reported activity."),
          id: t.Optional(uuid("The ID of the user or agent; absent for the server.")),
          name: t.String({ description: "The name of the user or agent; `server` for the server." }),
        },
        { description: "What caused the event." },
      ),
      old_deadline: optionalTime("The deadline before the event; absent if there was none."),
      new_deadline: optionalTime("The deadline after the event; absent if it was removed."),
    }),
    { description: "The events, newest first; at most 50." },
  ),
});
export type WorkspaceActivity = Static<typeof WorkspaceActivity>;
