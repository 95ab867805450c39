// Settings outside a workspace that affect its schedule: its template's settings, and its owner's status and quiet hours.
import { eq, sql } from "drizzle-orm";
import { build, query } from "../engine/sql.ts";
import { templates } from "../schema/templates.ts";
import { users } from "../schema/users.ts";

/** {template_id, owner_id}; includes deleted templates. */
export const findScheduleRules = query(
  build
    .select({
      active_version_id: templates.active_version_id,
      default_ttl_ms: templates.default_ttl_ms,
      activity_bump_ms: templates.activity_bump_ms,
      autostop_requirement_days: templates.autostop_requirement_days,
      autostop_requirement_weeks: templates.autostop_requirement_weeks,
      autostart_requirement_days: templates.autostart_requirement_days,
      allow_user_autostart: templates.allow_user_autostart,
      allow_user_autostop: templates.allow_user_autostop,
      failure_ttl_ms: templates.failure_ttl_ms,
      time_til_dormant_ms: templates.time_til_dormant_ms,
      time_til_dormant_autodelete_ms: templates.time_til_dormant_autodelete_ms,
      require_active_version: templates.require_active_version,
      owner_status: users.status,
      quiet_hours_schedule: users.quiet_hours_schedule,
    })
    .from(templates)
    .innerJoin(users, eq(users.id, sql.placeholder("owner_id")))
    .where(eq(templates.id, sql.placeholder("template_id"))),
);
const toScheduleRules = findScheduleRules({ template_id: "", owner_id: "" }).map;

export type ScheduleRules = Readonly<ReturnType<typeof toScheduleRules>>;
