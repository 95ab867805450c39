// Secrets of people. Written by src/domain/users/secrets.ts; the insert itself checks the limit per person.
import { and, asc, sql } from "drizzle-orm";
import { build, eqParam, query, type Statement, statement, updateBy } from "../engine/sql.ts";
import { user_secrets } from "../schema/user-secrets.ts";

export type UserSecretRow = typeof user_secrets.$inferSelect;

/** Ordered by name. Parameters: {user_id}. */
export const listUserSecrets = query(
  build
    .select()
    .from(user_secrets)
    .where(eqParam(user_secrets.user_id))
    .orderBy(asc(sql`lower(${user_secrets.name})`)),
);

/** Case-insensitive. Parameters: {user_id, name}. */
export const findUserSecret = query(
  build
    .select()
    .from(user_secrets)
    .where(and(eqParam(user_secrets.user_id), sql`lower(${user_secrets.name}) = lower(${sql.placeholder("name")})`)),
);

/** Rejected as `stale` when the person already has `maxCount` secrets, as `constraint` when a name, variable or file is taken. */
export const insertUserSecret = (row: UserSecretRow, maxCount: number): Statement => ({
  touches: [],
  sql: `insert into user_secrets
      (id, user_id, name, description, env_name, file_path, sealed_value, created_at, updated_at)
    select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9
    where (select count(*) from user_secrets where user_id = ?2) < ?10`,
  rows: [
    [
      ...[row.id, row.user_id, row.name, row.description, row.env_name, row.file_path, row.sealed_value],
      ...[row.created_at, row.updated_at, maxCount],
    ],
  ],
  expect: 1,
  alone: "personal",
});

export const updateUserSecret = updateBy(user_secrets, user_secrets.id);

/** Rejected as `stale` when none exists. */
export const deleteUserSecret = statement<{ user_id: string; id: string }>(
  build.delete(user_secrets).where(and(eqParam(user_secrets.user_id), eqParam(user_secrets.id))),
  { expect: 1 },
);
