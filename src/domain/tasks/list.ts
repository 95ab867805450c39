// The list of tasks and its search `q`.

import { isUuid } from "#base/ids.ts";
import { SearchQuery } from "#base/query.ts";
import { listTaskNames, listTasksById } from "#db/tasks/tasks.ts";
import { findUserByName } from "#db/users/users.ts";
import { TASK_STATUSES, type Task, type TaskStatus } from "#schema/tasks/task.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { isOwner } from "../access.ts";
import type { DomainContext } from "../context.ts";
import { loadOrganization } from "../organizations/find.ts";
import { presentTasks } from "./present.ts";

/** Maximum number of tasks considered, newest first. */
const MAX_TASKS = 1_000;
/** Tasks presented at a time: each has a prompt and a workspace, which can be large. */
const BATCH_SIZE = 20;

/** Returns the IDs of the caller's tasks, newest first; a site owner sees everyone's. Rejects an invalid `q` with 400. */
export const searchTasks = async (ctx: DomainContext, caller: UserCaller, q: string): Promise<string[]> => {
  const search = new SearchQuery(q);
  const owner = search.text("owner");
  const organization = search.text("organization");
  const status = search.choice("status", TASK_STATUSES);
  const words = search.free.toLowerCase();
  search.requireValid("Invalid task search query.");
  const requestedOwner = owner === undefined ? null : await resolveOwnerId(ctx, owner, caller);
  if (requestedOwner === undefined) return [];
  if (!isOwner(caller) && requestedOwner !== null && requestedOwner !== caller.user_id) return [];
  const owner_id = isOwner(caller) ? requestedOwner : caller.user_id;
  const organization_id =
    organization === undefined ? null : (await loadOrganization(ctx.store, organization, caller)).id;
  const rows = await ctx.store.scan(listTaskNames({ owner_id, organization_id, limit: MAX_TASKS }));
  const ids = rows
    .filter(({ name, display_name }) => `${name} ${display_name}`.toLowerCase().includes(words))
    .map(({ id }) => id);
  return status === undefined ? ids : filterByStatus(ctx, caller, ids, status);
};

/** Returns tasks that still exist, in any order. */
export const loadTasks = async (ctx: DomainContext, caller: UserCaller, ids: readonly string[]): Promise<Task[]> => {
  const rows = await ctx.store.scan(listTasksById({ ids: JSON.stringify(ids) }));
  return presentTasks(
    ctx,
    rows.map(({ task }) => task),
    caller,
  );
};

const filterByStatus = async (
  ctx: DomainContext,
  caller: UserCaller,
  ids: readonly string[],
  status: TaskStatus,
): Promise<string[]> => {
  const matching: string[] = [];
  for (let start = 0; start < ids.length; start += BATCH_SIZE) {
    const batch = ids.slice(start, start + BATCH_SIZE);
    const found = new Map((await loadTasks(ctx, caller, batch)).map((task) => [task.id, task.status]));
    matching.push(...batch.filter((id) => found.get(id) === status));
  }
  return matching;
};

const resolveOwnerId = async (
  { store }: DomainContext,
  owner: string,
  { user_id }: UserCaller,
): Promise<string | undefined> => {
  if (owner === "me") return user_id;
  return isUuid(owner) ? owner.toLowerCase() : (await store.get(findUserByName({ username: owner })))?.id;
};
