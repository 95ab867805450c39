// Due timers of all actors, or of the actors that this node owns. A timer names its actor, and the actor's row has the shard (column
// `part`).
import { and, asc, lte, sql } from "drizzle-orm";
import { build, query } from "./engine/sql.ts";
import { listDueTimers, MAX_DUE_TIMERS } from "./engine/timers.ts";
import { forOwnRows, isOwn } from "./own-rows.ts";
import { timers } from "./schema/core.ts";

/**
 * The shard of a timer's actor, from the actor's row. A task's timer names a task or a chat. Timers of actors without a shard belong to the
 * first node.
 */
const timerPart = sql`coalesce(case ${timers.actor}
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
    .where(and(lte(timers.due, sql.placeholder("now")), isOwn(timerPart)))
    .orderBy(asc(timers.due))
    .limit(MAX_DUE_TIMERS),
);

/** Like `listDueTimers`, but only for actors of this node's rows. Other timers do not count toward the page. */
export const listOwnDueTimers = forOwnRows(listDueTimers, listDue);
