// Users. Names and addresses are compared without letter case.
import { and, asc, eq, sql } from "drizzle-orm";
import { users } from "./schema/users.ts";
import { build, insertInto, query, updateBy } from "./sql.ts";

export type User = typeof users.$inferSelect;

const alive = eq(users.deleted, false);

export const findUser = query(
  build
    .select()
    .from(users)
    .where(and(eq(users.id, sql.placeholder("id")), alive)),
);

export const findUserByName = query(
  build
    .select()
    .from(users)
    .where(and(sql`lower(${users.username}) = lower(${sql.placeholder("username")})`, alive)),
);

export const findUserByEmail = query(
  build
    .select()
    .from(users)
    .where(and(sql`lower(${users.email}) = lower(${sql.placeholder("email")})`, alive)),
);

/** One row when there is any person at all (built-in accounts do not count). */
export const findAnyUser = query(
  build
    .select({ id: users.id })
    .from(users)
    .where(eq(users.login_type, "password"))
    .orderBy(asc(users.created_at))
    .limit(1),
);

export const insertUser = insertInto(users);
export const updateUser = updateBy(users, users.id);
