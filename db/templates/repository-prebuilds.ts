// Repositories whose image is built in advance.
import { asc, count, eq } from "drizzle-orm";
import { build, deleteBy, findBy, insertInto, query, updateBy } from "../engine/sql.ts";
import { repository_prebuilds } from "../schema/repository-prebuilds.ts";
import { users } from "../schema/users.ts";

export type RepositoryPrebuildRow = typeof repository_prebuilds.$inferSelect;

/** Parameters: {id}. */
export const findRepositoryPrebuild = findBy(repository_prebuilds, repository_prebuilds.id);

/** Ordered by repository name, with the usernames of the people who added them. */
export const listRepositoryPrebuilds = query(
  build
    .select({ prebuild: repository_prebuilds, owner_name: users.username })
    .from(repository_prebuilds)
    .innerJoin(users, eq(users.id, repository_prebuilds.owner_id))
    .orderBy(asc(repository_prebuilds.name), asc(repository_prebuilds.url), asc(repository_prebuilds.id)),
);

export const countRepositoryPrebuilds = query(build.select({ count: count() }).from(repository_prebuilds));

/** Rejected as `constraint` when the organization already has this repository. */
export const insertRepositoryPrebuild = insertInto(repository_prebuilds);
export const updateRepositoryPrebuild = updateBy(repository_prebuilds, repository_prebuilds.id);
export const deleteRepositoryPrebuild = deleteBy(repository_prebuilds, repository_prebuilds.id);
