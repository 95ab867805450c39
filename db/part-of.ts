// Finds the shard of an entity by its ID with one read by key. It never changes (src/base/parts.ts).
import { eq, sql } from "drizzle-orm";
import { build, given, query } from "./engine/sql.ts";
import type { Store } from "./engine/store.ts";
import { agents } from "./schema/agents.ts";
import { chats } from "./schema/chats.ts";
import { jobs } from "./schema/jobs.ts";
import { tasks } from "./schema/tasks.ts";
import { template_versions } from "./schema/templates.ts";
import { trials } from "./schema/trials.ts";
import { workspace_builds, workspaces } from "./schema/workspaces.ts";

const part = { part: workspaces.part };

const LOOKS = {
  workspace: query(build.select(part).from(workspaces).where(given(workspaces.id))),
  agent: query(
    build
      .select(part)
      .from(agents)
      .innerJoin(workspaces, eq(workspaces.id, agents.workspace_id))
      .where(given(agents.id)),
  ),
  /** By the digest of an agent token, whether it is valid or not. */
  token: query(
    build
      .select(part)
      .from(agents)
      .innerJoin(workspaces, eq(workspaces.id, agents.workspace_id))
      .where(eq(agents.token_hash, sql.placeholder("id"))),
  ),
  build: query(
    build
      .select(part)
      .from(workspace_builds)
      .innerJoin(workspaces, eq(workspaces.id, workspace_builds.workspace_id))
      .where(given(workspace_builds.id)),
  ),
  task: query(
    build.select(part).from(tasks).innerJoin(workspaces, eq(workspaces.id, tasks.workspace_id)).where(given(tasks.id)),
  ),
  trial: query(
    build
      .select(part)
      .from(trials)
      .innerJoin(workspaces, eq(workspaces.id, trials.workspace_id))
      .where(given(trials.id)),
  ),
  chat: query(build.select({ part: chats.part }).from(chats).where(given(chats.id))),
  template_version: query(
    build.select({ part: template_versions.part }).from(template_versions).where(given(template_versions.id)),
  ),
} as const;

const jobInput = query(build.select({ id: jobs.id, input: jobs.input }).from(jobs).where(given(jobs.id)));

export type Parted = keyof typeof LOOKS | "job";

/** Returns the shard of an existing entity, or undefined. A job belongs to the shard of its build, its version or its dry run. */
export const findPart = async (store: Pick<Store, "get">, kind: Parted, id: string): Promise<number | undefined> => {
  if (kind !== "job") return (await store.get(LOOKS[kind]({ id })))?.part;
  const input = (await store.get(jobInput({ id })))?.input;
  if (input === undefined || input.part !== undefined) return input?.part;
  if (input.workspace_build_id !== undefined) return findPart(store, "build", input.workspace_build_id);
  return input.template_version_id === undefined
    ? undefined
    : findPart(store, "template_version", input.template_version_id);
};
