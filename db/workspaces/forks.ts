// Forks of workspaces: their rows, and the progress of their copies. Written by the keeper of forks (actors/forks/keeper.ts), except the
// first row, which is part of the snapshot's batch.
import { and, desc, eq, inArray, isNull, max, sql } from "drizzle-orm";
import { build, eqParam, findBy, insertInto, query, updateBy } from "../engine/sql.ts";
import { forOwnRows, isOwn } from "../own-rows.ts";
import { chats, messages } from "../schema/chats.ts";
import { workspace_forks } from "../schema/forks.ts";
import { jobs } from "../schema/jobs.ts";
import { workspace_builds, workspaces } from "../schema/workspaces.ts";

export type ForkRow = typeof workspace_forks.$inferSelect;

export const findFork = findBy(workspace_forks, workspace_forks.id);

const isOpen = inArray(workspace_forks.status, ["copying", "creating"]);

/** All forks of a workspace, newest first. Parameters: {workspace_id, limit}. */
export const listForks = query(
  build
    .select()
    .from(workspace_forks)
    .where(eqParam(workspace_forks.workspace_id))
    .orderBy(desc(workspace_forks.created_at), desc(workspace_forks.id))
    .limit(sql.placeholder("limit")),
);

/** Forks of a workspace that are being created. Parameters: {workspace_id}. */
export const listForksInProgress = query(
  build
    .select({ id: workspace_forks.id })
    .from(workspace_forks)
    .where(and(eqParam(workspace_forks.workspace_id), isOpen)),
);

const selectForks = () => build.select({ id: workspace_forks.id }).from(workspace_forks);

/** Forks that are being created, resumed at startup. */
export const listOpenForks = forOwnRows(
  query(selectForks().where(isOpen)),
  query(
    selectForks()
      .innerJoin(workspaces, eq(workspaces.id, workspace_forks.workspace_id))
      .where(and(isOpen, isOwn(workspaces.part))),
  ),
);

/** Builds that restore the files of copies, with their results. Parameters: {restored_snapshot_id}. */
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
    .where(eqParam(workspace_builds.restored_snapshot_id)),
);

/** An owner's chats in a workspace with their newest messages, most recently used first. Parameters: {workspace_id, owner_id, limit}. */
export const listChatsToCopy = query(
  build
    .select({ id: chats.id, up_to: max(messages.id) })
    .from(chats)
    .innerJoin(messages, eq(messages.chat, chats.key))
    .where(
      and(
        eqParam(chats.workspace_id),
        eqParam(chats.owner_id),
        eq(chats.archived, false),
        isNull(chats.parent_chat_id),
      ),
    )
    .groupBy(chats.id, chats.updated_at)
    .orderBy(desc(chats.updated_at))
    .limit(sql.placeholder("limit")),
);

export const insertFork = insertInto(workspace_forks);
export const updateFork = updateBy(workspace_forks, workspace_forks.id);
