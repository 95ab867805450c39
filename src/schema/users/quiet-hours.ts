// Wire shapes of quiet hours, the time when a required stop disturbs the user least, and of app preferences.
import { type Static, Type as t } from "@sinclair/typebox";
import { time } from "../fields.ts";
import { namedObject } from "../shape-names.ts";

export const QuietHours = namedObject("QuietHours", {
  raw_schedule: t.String({ description: "The cron schedule, such as `CRON_TZ=Europe/Paris 0 22 * * *`." }),
  user_set: t.Boolean({ description: "Whether the user has set the quiet hours. Otherwise, the default applies." }),
  user_can_set: t.Boolean({ description: "Whether users can set quiet hours. Always true." }),
  time: t.String({ description: "The time of day at which the quiet hours start, such as 22:00." }),
  timezone: t.String({ description: "The time zone of `time`." }),
  next: time("When the quiet hours next start."),
});
export type QuietHours = Static<typeof QuietHours>;

export const UpdateQuietHoursRequest = namedObject("UpdateQuietHoursRequest", {
  schedule: t.String({
    maxLength: 256,
    description:
      "A cron schedule with a daily time and a time zone, such as `CRON_TZ=Europe/Paris 0 22 * * *`. If empty, midnight in UTC.",
  }),
});

export const UserPreferences = namedObject("UserPreferences", {
  task_notification_alert_dismissed: t.Boolean({
    description: "Whether to hide the notice that notifications of chats and tasks are off.",
  }),
  wake_on_connect: t.Boolean({
    description: "Whether connecting to a stopped workspace starts it, if its template allows that.",
  }),
});
export type UserPreferences = Static<typeof UserPreferences>;

export const UpdateUserPreferences = namedObject("UpdateUserPreferencesRequest", {
  task_notification_alert_dismissed: UserPreferences.properties.task_notification_alert_dismissed,
  wake_on_connect: t.Optional(UserPreferences.properties.wake_on_connect),
});
export type UpdateUserPreferences = Static<typeof UpdateUserPreferences>;
