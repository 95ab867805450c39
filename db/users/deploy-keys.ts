// Deploy keys of people. Written by src/domain/users/deploy-keys.ts; the insert itself checks the limit per person.
import { and, asc, desc } from "drizzle-orm";
import { build, eqParam, query, type Statement, statement } from "../engine/sql.ts";
import { deploy_keys } from "../schema/deploy-keys.ts";

export type DeployKeyRow = typeof deploy_keys.$inferSelect;

/** Ordered by repository. Parameters: {user_id}. */
export const listDeployKeys = query(
  build.select().from(deploy_keys).where(eqParam(deploy_keys.user_id)).orderBy(asc(deploy_keys.repository)),
);

/** Parameters: {user_id, id}. */
export const findDeployKey = query(
  build
    .select()
    .from(deploy_keys)
    .where(and(eqParam(deploy_keys.user_id), eqParam(deploy_keys.id))),
);

/** By the repository's web URL. Parameters: {user_id, repository}. */
export const findDeployKeyByRepository = query(
  build
    .select()
    .from(deploy_keys)
    .where(and(eqParam(deploy_keys.user_id), eqParam(deploy_keys.repository))),
);

/** By the repository as ssh requests it, on any port, newest first. Parameters: {user_id, ssh_repository}. */
export const listDeployKeysBySsh = query(
  build
    .select()
    .from(deploy_keys)
    .where(and(eqParam(deploy_keys.user_id), eqParam(deploy_keys.ssh_repository)))
    .orderBy(desc(deploy_keys.created_at)),
);

/** Rejected as `stale` when the person already has `maxCount` keys, as `constraint` when the repository has one. */
export const insertDeployKey = (row: DeployKeyRow, maxCount: number): Statement => ({
  touches: [],
  sql: `insert into deploy_keys
      (id, user_id, url, ssh_url, repository, ssh_repository, public_key, sealed_private_key, created_at)
    select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9
    where (select count(*) from deploy_keys where user_id = ?2) < ?10`,
  rows: [
    [
      ...[row.id, row.user_id, row.url, row.ssh_url, row.repository, row.ssh_repository],
      ...[row.public_key, row.sealed_private_key, row.created_at, maxCount],
    ],
  ],
  expect: 1,
  alone: "personal",
});

/** Rejected as `stale` when none exists. */
export const deleteDeployKey = statement<{ user_id: string; id: string }>(
  build.delete(deploy_keys).where(and(eqParam(deploy_keys.user_id), eqParam(deploy_keys.id))),
  { expect: 1 },
);
