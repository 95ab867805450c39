// Finds the shard of an entity by its ID, with one read by key. The shard of an entity never changes (src/base/shards.ts).
import { eq, sql } from "drizzle-orm";
import { build, eqParam, query } from "./engine/sql.ts";
import type { Store } from "./engine/store.ts";
import { agents } from "./schema/agents.ts";
import { chats } from "./schema/chats.ts";
import { jobs } from "./schema/jobs.ts";
import { tasks } from "./schema/tasks.ts";
import { template_versions } from "./schema/templates.ts";
import { trials } from "./schema/trials.ts";
import { workspace_builds, workspaces } from "./schema/workspaces.ts";

const shardColumn = { part: workspaces.part };

const SHARD_QUERIES = {
  workspace: query(build.select(shardColumn).from(workspaces).where(eqParam(workspaces.id))),
  agent: query(
    build
      .select(shardColumn)
      .from(agents)
      .innerJoin(workspaces, eq(workspaces.id, agents.workspace_id))
      .where(eqParam(agents.id)),
  ),
  /** Finds the shard by the digest of an agent token, which need not be valid. */
  token: query(
    build
      .select(shardColumn)
      .from(agents)
      .innerJoin(workspaces, eq(workspaces.id, agents.workspace_id))
      .where(eq(agents.token_hash, sql.placeholder("id"))),
  ),
  build: query(
    build
      .select(shardColumn)
      .from(workspace_builds)
      .innerJoin(workspaces, eq(workspaces.id, workspace_builds.workspace_id))
      .where(eqParam(workspace_builds.id)),
  ),
  task: query(
    build
      .select(shardColumn)
      .from(tasks)
      .innerJoin(workspaces, eq(workspaces.id, tasks.workspace_id))
      .where(eqParam(tasks.id)),
  ),
  trial: query(
    build
      .select(shardColumn)
      .from(trials)
      .innerJoin(workspaces, eq(workspaces.id, trials.workspace_id))
      .where(eqParam(trials.id)),
  ),
  chat: query(build.select({ part: chats.part }).from(chats).where(eqParam(chats.id))),
  template_version: query(
    build.select({ part: template_versions.part }).from(template_versions).where(eqParam(template_versions.id)),
  ),
} as const;

const findJobInput = query(build.select({ id: jobs.id, input: jobs.input }).from(jobs).where(eqParam(jobs.id)));

export type ShardedKind = keyof typeof SHARD_QUERIES | "job";

/** Returns the shard of an existing entity, or undefined. A job belongs to the shard of its build, its version or its dry run. */
export const findShard = async (
  store: Pick<Store, "get">,
  kind: ShardedKind,
  id: string,
): Promise<number | undefined> => {
  if (kind !== "job") return (await store.get(SHARD_QUERIES[kind]({ id })))?.part;
  const input = (await store.get(findJobInput({ id })))?.input;
  if (input === undefined || input.part !== undefined) return input?.part;
  if (input.workspace_build_id !== undefined) return findShard(store, "build", input.workspace_build_id);
  return input.template_version_id === undefined
    ? undefined
    : findShard(store, "template_version", input.template_version_id);
};
