// The conversation snapshot left by an agent in the workspace of a task.
import { notFound } from "#base/errors.ts";
import { findTask, updateTask } from "#db/tasks/tasks.ts";
import type { AgentCaller } from "#schema/users/caller.ts";
import type { DomainContext } from "../context.ts";

/** Replaces the previous snapshot. Rejects with 404 when the agent's workspace is not the task's. */
export const storeTaskSnapshot = async (
  { store, clock }: DomainContext,
  id: string,
  { workspace_id }: AgentCaller,
  messages: readonly unknown[],
): Promise<void> => {
  const task = (await store.get(findTask({ id: id.toLowerCase() })))?.task;
  if (!task || task.workspace_id !== workspace_id) throw notFound();
  await store.commit([updateTask(task.id, { snapshot: { messages, at: clock.now() } })]);
};
