// Which timers are due: of all actors, or of those of some parts. A timer knows its actor, and the actor its part.
import { and, asc, lte, sql } from "drizzle-orm";
import type { PartNumbers } from "#base/parts.ts";
import { build, type Query, query } from "./engine/sql.ts";
import { dueTimers, TIMERS_AT_ONCE, type Timer } from "./engine/timers.ts";
import { isAmongParts } from "./parts.ts";
import { timers } from "./schema/core.ts";

/** Of a task there is a workspace, or a chat stands in its place. What has no part, or is there no more, is the first node's. */
const part = sql`coalesce(case ${timers.actor}
  when 'workspace' then (select w.part from workspaces w where w.id = ${timers.actor_id})
  when 'chat' then (select c.part from chats c where c.id = ${timers.actor_id})
  when 'chat_diff' then (select c.part from chats c where c.id = ${timers.actor_id})
  when 'template_version' then (select v.part from template_versions v where v.id = ${timers.actor_id})
  when 'dry_run' then (select coalesce(cast(j.input ->> 'part' as integer),
    (select v.part from template_versions v where v.id = j.input ->> 'template_version_id')) from jobs j where j.id = ${timers.actor_id})
  when 'task' then coalesce((select w.part from tasks t join workspaces w on w.id = t.workspace_id where t.id = ${timers.actor_id}),
    (select c.part from chats c where c.id = ${timers.actor_id}))
end, 0)`;

const listDue = query(
  build
    .select()
    .from(timers)
    .where(and(lte(timers.due, sql.placeholder("now")), isAmongParts(part)))
    .orderBy(asc(timers.due))
    .limit(TIMERS_AT_ONCE),
);

/** As `dueTimers`, for actors of these parts. Timers of others fill no page. */
export const dueTimersInParts = (parts: PartNumbers, now: number): Query<Timer> =>
  parts === undefined ? dueTimers({ now }) : listDue({ now, parts: JSON.stringify(parts) });
