// Quiet hours: the time when a stop required by the template disturbs the user least. A change also applies to the user's running
// workspaces (rules TI-6, TI-31).
import { DEFAULT_QUIET_HOURS } from "#actors/workspace/deadline.ts";
import { toRfc3339 } from "#base/clock.ts";
import { forbidden, invalidField } from "#base/errors.ts";
import { findDailyTime, findNextTime, findScheduleProblem } from "#base/schedule/cron.ts";
import { setTimersOfOwner } from "#db/engine/timers.ts";
import { updateUser } from "#db/users/users.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { QuietHours } from "#schema/users/quiet-hours.ts";
import { canEditProfile } from "../access.ts";
import type { DomainContext } from "../context.ts";
import { auditUserChanged } from "../users/audit.ts";
import { findUserInPath, type KnownUser } from "../users/find.ts";
import { PREBUILDS_USER_ID } from "../users/first-user.ts";

/** Returns the user in the path: oneself, or a user the caller administers. Rejects with 403 or 404. */
export const findQuietOwner = async (
  { store }: DomainContext,
  text: string,
  caller: UserCaller,
): Promise<KnownUser> => {
  const user = await findUserInPath(store, text, caller);
  if (!canEditProfile(caller, user) || user.id === PREBUILDS_USER_ID) throw forbidden();
  return user;
};

export const toQuietHours = (
  { quiet_hours_schedule }: Pick<KnownUser, "quiet_hours_schedule">,
  now: number,
): QuietHours => {
  const raw_schedule = quiet_hours_schedule || DEFAULT_QUIET_HOURS;
  const { hour = 0, minute = 0, zone = "UTC" } = findDailyTime(raw_schedule) ?? {};
  return {
    raw_schedule,
    user_set: quiet_hours_schedule !== "",
    user_can_set: true,
    time: [hour, minute].map((part) => String(part).padStart(2, "0")).join(":"),
    timezone: zone,
    next: toRfc3339(findNextTime(raw_schedule, now) ?? now),
  };
};

/** Rejects with 400 for anything but a daily time. */
export const setQuietHours = async (ctx: DomainContext, user: KnownUser, schedule: string): Promise<QuietHours> => {
  const quiet_hours_schedule = schedule.trim();
  if (quiet_hours_schedule !== "" && !findDailyTime(quiet_hours_schedule)) {
    const problem =
      findScheduleProblem(quiet_hours_schedule) ??
      "must be one time of every day, such as CRON_TZ=Europe/Paris 0 22 * * *";
    throw invalidField("schedule", problem);
  }
  const now = ctx.clock.now();
  if (quiet_hours_schedule !== user.quiet_hours_schedule) {
    await ctx.store.commit([
      updateUser(user.id, { quiet_hours_schedule, updated_at: now }, { expect: 1 }),
      setTimersOfOwner(user.id, "schedule", now),
      auditUserChanged(user, { quiet_hours_schedule }, now),
    ]);
  }
  return toQuietHours({ quiet_hours_schedule }, now);
};
