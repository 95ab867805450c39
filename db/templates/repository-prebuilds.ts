// Repositories whose image is built ahead.
import { asc, count, eq } from "drizzle-orm";
import { build, deleteBy, findBy, insertInto, query, updateBy } from "../engine/sql.ts";
import { repository_prebuilds } from "../schema/repository-prebuilds.ts";
import { users } from "../schema/users.ts";

export type RepositoryPrebuildRow = typeof repository_prebuilds.$inferSelect;

/** {id}. */
export const findRepositoryPrebuild = findBy(repository_prebuilds, repository_prebuilds.id);

/** By the names of their repositories, with the user names of the people who added them. */
export const listRepositoryPrebuilds = query(
  build
    .select({ prebuild: repository_prebuilds, owner_name: users.username })
    .from(repository_prebuilds)
    .innerJoin(users, eq(users.id, repository_prebuilds.owner_id))
    .orderBy(asc(repository_prebuilds.name), asc(repository_prebuilds.url), asc(repository_prebuilds.id)),
);

export const countRepositoryPrebuilds = query(build.select({ count: count() }).from(repository_prebuilds));

/** Refused as `constraint` when the organization has one of this repository. */
export const insertRepositoryPrebuild = insertInto(repository_prebuilds);
export const updateRepositoryPrebuild = updateBy(repository_prebuilds, repository_prebuilds.id);
export const deleteRepositoryPrebuild = deleteBy(repository_prebuilds, repository_prebuilds.id);
