// Addresses from which users have signed in, written with each sign-in. `network` is an IPv4 address or the /64 prefix of an IPv6 address.
import { and, eq, sql } from "drizzle-orm";
import { build, eqParam, query, statement } from "./engine/sql.ts";
import { known_addresses } from "./schema/known-addresses.ts";
import { users } from "./schema/users.ts";

const param = sql.placeholder;

/** Returns a row if the user with this email address has signed in from this network after `since`. Parameters: {email, network, since}. */
export const findKnownAddress = query(
  build
    .select({ last_used: known_addresses.last_used })
    .from(known_addresses)
    .innerJoin(users, eq(users.id, known_addresses.user_id))
    .where(
      and(
        sql`lower(${users.email}) = lower(${param("email")})`,
        eq(users.deleted, false),
        eqParam(known_addresses.network),
        sql`${known_addresses.last_used} > ${param("since")}`,
      ),
    ),
);

export const rememberAddress = statement<{ user_id: string; network: string; last_used: number }>(
  build
    .insert(known_addresses)
    .values({ user_id: param("user_id"), network: param("network"), last_used: param("last_used") })
    .onConflictDoUpdate({
      target: [known_addresses.user_id, known_addresses.network],
      set: { last_used: sql`excluded.last_used` },
    }),
);

/** Deletes addresses beyond a user's newest 50, and those unused since a time. */
export const deleteOldAddresses = statement<{ user_id: string; since: number }>(
  build.delete(known_addresses).where(
    sql`${known_addresses.user_id} = ${param("user_id")} and (${known_addresses.last_used} <= ${param("since")} or ${known_addresses.network} not in (
      select newest.network from ${known_addresses} as newest where newest.user_id = ${param("user_id")} order by newest.last_used desc, newest.network limit 50))`,
  ),
);
