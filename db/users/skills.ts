// Personal skills. Written by src/domain/users/skills.ts; the insert itself checks the limit per person.
import { and, asc } from "drizzle-orm";
import { build, eqParam, findBy, query, type Statement, statement, updateBy } from "../engine/sql.ts";
import { user_skills } from "../schema/context.ts";

export type UserSkillRow = typeof user_skills.$inferSelect;

/** Ordered by name. Parameters: {user_id}. */
export const listUserSkills = query(
  build.select().from(user_skills).where(eqParam(user_skills.user_id)).orderBy(asc(user_skills.name)),
);

/** Names and descriptions, ordered by name. Parameters: {user_id}. */
export const listUserSkillNames = query(
  build
    .select({ name: user_skills.name, description: user_skills.description })
    .from(user_skills)
    .where(eqParam(user_skills.user_id))
    .orderBy(asc(user_skills.name)),
);

/** Parameters: {user_id, id}. */
export const findUserSkill = findBy(user_skills, user_skills.user_id, user_skills.id);

/** Rejected as `stale` when the person already has `maxCount` skills, as `constraint` when the name is taken. */
export const insertUserSkill = (row: UserSkillRow, maxCount: number): Statement => ({
  touches: [],
  sql: `insert into user_skills (id, user_id, name, description, content, created_at, updated_at)
    select ?1, ?2, ?3, ?4, ?5, ?6, ?7 where (select count(*) from user_skills where user_id = ?2) < ?8`,
  rows: [[row.id, row.user_id, row.name, row.description, row.content, row.created_at, row.updated_at, maxCount]],
  expect: 1,
  alone: "personal",
});

export const updateUserSkill = updateBy(user_skills, user_skills.id);

/** Rejected as `stale` when none exists. */
export const deleteUserSkill = statement<{ user_id: string; id: string }>(
  build.delete(user_skills).where(and(eqParam(user_skills.user_id), eqParam(user_skills.id))),
  { expect: 1 },
);
