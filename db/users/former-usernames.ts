// Usernames that have become free and are held for the people who had them.
import { and, desc, gt, lte, notInArray, sql } from "drizzle-orm";
import { build, eqParam, query, type Statement, statement } from "../engine/sql.ts";
import { former_usernames } from "../schema/users.ts";

const HOLD_MS = 90 * 86_400_000;
/** A person who renames often must not reserve an unlimited number of names. */
const MAX_HELD = 3;

const param = sql.placeholder;

/** Who holds the name: {name, now}, the name in lower case. */
export const findHolder = query(
  build
    .select({ user_id: former_usernames.user_id })
    .from(former_usernames)
    .where(and(eqParam(former_usernames.name), gt(former_usernames.until, param("now")))),
);

const dropExpired = statement<{ now: number }>(
  build.delete(former_usernames).where(lte(former_usernames.until, param("now"))),
);

const insertHold = statement<{ name: string; user_id: string; until: number }>(
  build
    .insert(former_usernames)
    .values({ name: param("name"), user_id: param("user_id"), until: param("until") as never })
    .onConflictDoUpdate({
      target: former_usernames.name,
      set: { user_id: sql`excluded.user_id`, until: sql`excluded.until` },
    }),
);

const dropOldest = statement<{ user_id: string }>(
  build
    .delete(former_usernames)
    .where(
      and(
        eqParam(former_usernames.user_id),
        notInArray(
          former_usernames.name,
          build
            .select({ name: former_usernames.name })
            .from(former_usernames)
            .where(eqParam(former_usernames.user_id))
            .orderBy(desc(former_usernames.until), former_usernames.name)
            .limit(MAX_HELD),
        ),
      ),
    ),
);

/** Reserves a name that its user gives up, and keeps the user's most recent earlier names reserved. */
export const holdUsername = (user: { readonly id: string; readonly username: string }, now: number): Statement[] => [
  dropExpired({ now }),
  insertHold({ name: user.username.toLowerCase(), user_id: user.id, until: now + HOLD_MS }),
  dropOldest({ user_id: user.id }),
];
