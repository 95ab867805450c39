// Finds the task in a path. A task contains a prompt and a chat, so only its owner can use it; site owners can view and stop it.
import { Type as t } from "@sinclair/typebox";
import { notFound } from "#base/errors.ts";
import { isUuid } from "#base/ids.ts";
import type { Store } from "#db/engine/store.ts";
import { findTask, findTaskByName, type TaskRow } from "#db/tasks/tasks.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { canUpdateChat } from "../access.ts";
import { loadAnyUser, userPath } from "../users/find.ts";

/** The path parameters of routes of one task. */
export const taskPath = t.Object({
  user: userPath.properties.user,
  task: t.String({ description: "The task's ID, or its name in any letter case." }),
});

/** Rejects with 404 when it does not exist, has a different owner than the path says, or is not visible to the caller. */
export const loadTask = async (
  store: Store,
  { user, task }: typeof taskPath.static,
  caller: UserCaller,
): Promise<TaskRow> => {
  const { id: owner_id } = await loadAnyUser(store, user, caller);
  const key = isUuid(task) ? findTask({ id: task.toLowerCase() }) : findTaskByName({ owner_id, name: task });
  const found = (await store.get(key))?.task;
  if (!found || found.owner_id !== owner_id || !canUpdateChat(caller, found)) throw notFound();
  return found;
};
