// Forks of workspaces: their rows, and how far their copies have come. Written by the keeper of forks (actors/forks/keeper.ts), but for the first
// row, which goes with the snapshot.
import { and, desc, eq, inArray, isNull, max, sql } from "drizzle-orm";
import { build, findBy, given, insertInto, query, updateBy } from "../engine/sql.ts";
import { isAmongParts, ofParts } from "../parts.ts";
import { chats, messages } from "../schema/chats.ts";
import { workspace_forks } from "../schema/forks.ts";
import { jobs } from "../schema/jobs.ts";
import { workspace_builds, workspaces } from "../schema/workspaces.ts";

export type ForkRow = typeof workspace_forks.$inferSelect;

export const findFork = findBy(workspace_forks, workspace_forks.id);

const isOpen = inArray(workspace_forks.status, ["copying", "creating"]);

/** All of a workspace, the newest first: {workspace_id, limit}. */
export const listForks = query(
  build
    .select()
    .from(workspace_forks)
    .where(given(workspace_forks.workspace_id))
    .orderBy(desc(workspace_forks.created_at), desc(workspace_forks.id))
    .limit(sql.placeholder("limit")),
);

/** Those of a workspace that are being made: {workspace_id}. */
export const listForksUnderWay = query(
  build
    .select({ id: workspace_forks.id })
    .from(workspace_forks)
    .where(and(given(workspace_forks.workspace_id), isOpen)),
);

const open = () => build.select({ id: workspace_forks.id }).from(workspace_forks);

/** Those that are being made: taken up again at start. */
export const listOpenForks = ofParts(
  query(open().where(isOpen)),
  query(
    open()
      .innerJoin(workspaces, eq(workspaces.id, workspace_forks.workspace_id))
      .where(and(isOpen, isAmongParts(workspaces.part))),
  ),
);

/** The builds that give copies their files, with what became of them: {restored_snapshot_id}. */
export const listBuildsOfFork = query(
  build
    .select({
      workspace_id: workspace_builds.workspace_id,
      name: workspaces.name,
      build_number: workspace_builds.build_number,
      deleted: workspaces.deleted,
      started_at: jobs.started_at,
      canceled_at: jobs.canceled_at,
      completed_at: jobs.completed_at,
      error: jobs.error,
    })
    .from(workspace_builds)
    .innerJoin(workspaces, eq(workspaces.id, workspace_builds.workspace_id))
    .innerJoin(jobs, eq(jobs.id, workspace_builds.job_id))
    .where(given(workspace_builds.restored_snapshot_id)),
);

/** The chats of an owner in a workspace with their newest messages, the chat used last first: {workspace_id, owner_id, limit}. */
export const listChatsToCopy = query(
  build
    .select({ id: chats.id, up_to: max(messages.id) })
    .from(chats)
    .innerJoin(messages, eq(messages.chat, chats.key))
    .where(
      and(given(chats.workspace_id), given(chats.owner_id), eq(chats.archived, false), isNull(chats.parent_chat_id)),
    )
    .groupBy(chats.id, chats.updated_at)
    .orderBy(desc(chats.updated_at))
    .limit(sql.placeholder("limit")),
);

export const insertFork = insertInto(workspace_forks);
export const updateFork = updateBy(workspace_forks, workspace_forks.id);
