// The list of tasks and its search `q`.

import { isUuid } from "#base/ids.ts";
import { SearchQuery } from "#base/query.ts";
import { listTasks } from "#db/tasks/tasks.ts";
import { findUserByName } from "#db/users/users.ts";
import type { Page } from "#schema/page.ts";
import { TASK_STATUSES, type Tasks } from "#schema/tasks/task.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { isOwner } from "../access.ts";
import type { DomainContext } from "../context.ts";
import { loadOrganization } from "../organizations/find.ts";
import { presentTasks } from "./present.ts";

/** Maximum number of tasks considered, newest first. */
const MAX_TASKS = 1_000;
const NO_TASKS: Tasks = { tasks: [], count: 0 };

/** Returns the caller's tasks, newest first; a site owner sees everyone's. Rejects an invalid `q` with 400. */
export const searchTasks = async (
  ctx: DomainContext,
  caller: UserCaller,
  q: string,
  { limit, offset }: Page,
): Promise<Tasks> => {
  const search = new SearchQuery(q);
  const owner = search.text("owner");
  const organization = search.text("organization");
  const status = search.choice("status", TASK_STATUSES);
  const words = search.free.toLowerCase();
  search.requireValid("Invalid task search query.");
  const requested = owner === undefined ? null : await resolveOwnerId(ctx, owner, caller);
  if (requested === undefined) return NO_TASKS;
  if (!isOwner(caller) && requested !== null && requested !== caller.user_id) return NO_TASKS;
  const owner_id = isOwner(caller) ? requested : caller.user_id;
  const organization_id =
    organization === undefined ? null : (await loadOrganization(ctx.store, organization, caller)).id;
  const rows = await ctx.store.scan(listTasks({ owner_id, organization_id, limit: MAX_TASKS }));
  const named = rows
    .map(({ task }) => task)
    .filter(({ name, display_name }) => `${name} ${display_name}`.toLowerCase().includes(words));
  // Only a status filter requires presenting all of them.
  const shown = await presentTasks(ctx, status === undefined ? named.slice(offset, offset + limit) : named, caller);
  if (status === undefined) return { tasks: shown, count: named.length };
  const fitting = shown.filter((task) => task.status === status);
  return { tasks: fitting.slice(offset, offset + limit), count: fitting.length };
};

const resolveOwnerId = async (
  { store }: DomainContext,
  owner: string,
  { user_id }: UserCaller,
): Promise<string | undefined> => {
  if (owner === "me") return user_id;
  return isUuid(owner) ? owner.toLowerCase() : (await store.get(findUserByName({ username: owner })))?.id;
};
