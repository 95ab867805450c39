// Changes an existing task: its prompt, messages to its chat, pausing, resuming and deleting.
import { END_CHAT_TIMER, PROMPT_TIMER, TASK } from "#actors/tasks/keeper.ts";
import { conflict, forbidden, notFound } from "#base/errors.ts";
import { findChatAccessRow } from "#db/chats/chats.ts";
import { CommitError } from "#db/engine/store.ts";
import { setTimer } from "#db/engine/timers.ts";
import { replacePrompt, type TaskRow, updateTask } from "#db/tasks/tasks.ts";
import { findWorkspace } from "#db/workspaces/workspaces.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { Build } from "#schema/workspaces/build.ts";
import { canDriveChat, canWorkIn } from "../access.ts";
import { createBuild } from "../builds/create.ts";
import { admitUserPrompt } from "../chats/admission.ts";
import { toContent } from "../chats/input.ts";
import type { DomainContext } from "../context.ts";
import { auditTask } from "./audit.ts";
import { parsePrompt } from "./create.ts";

const requireOwner = (caller: UserCaller, task: TaskRow): void => {
  if (!canDriveChat(caller, task)) throw forbidden("Only the owner of a task can do this.");
  if (!canWorkIn(caller, task.organization_id)) throw forbidden("You are not a member of the task's organization.");
};

/** Replaces the prompt before it is delivered. Throws 403, 409. */
export const changePrompt = async (
  { store, clock }: DomainContext,
  task: TaskRow,
  caller: UserCaller,
  input: string,
): Promise<void> => {
  requireOwner(caller, task);
  const prompt = parsePrompt(input);
  const now = clock.now();
  const after = { ...task, prompt, updated_at: now };
  const writes = [replacePrompt({ id: task.id, prompt, updated_at: now }), ...auditTask({ before: task, after }, now)];
  await store.commit(writes).catch((error) => {
    if (!(error instanceof CommitError) || error.reason !== "stale") throw error;
    throw conflict("The task already has its prompt. Send it a message instead.");
  });
};

/** Sends a message to the chat of the task, or queues it during a turn. Throws 403; 409 if the chat cannot receive messages. */
export const sendToTask = async (
  ctx: DomainContext,
  task: TaskRow,
  caller: UserCaller,
  input: string,
): Promise<void> => {
  requireOwner(caller, task);
  const content = toContent([{ type: "text", text: input }]);
  const workspace = await ctx.store.get(findWorkspace({ id: task.workspace_id }));
  if (workspace?.status === "stopped" || workspace?.status === "stopping") {
    throw conflict("The task is paused. Resume it first.");
  }
  const chat = await ctx.store.get(findChatAccessRow({ id: task.chat_id }));
  if (!chat && task.delivered_at !== null) throw conflict("The chat of this task was deleted.");
  if (!chat)
    throw conflict(
      task.problem ||
        "The task's prompt has not been delivered yet because its workspace is starting. Try again shortly.",
    );
  if (chat.archived) throw conflict("The chat is archived. Unarchive it first.");
  const behavior = "queue" as const;
  const admitted = await admitUserPrompt(ctx, chat, { content, command: { type: "send", behavior } });
  await ctx.chats.ask(chat.id, "send", {
    content: admitted.content,
    custom_prompt: admitted.custom_prompt,
    created_by: caller.user_id,
    behavior,
    patch: {},
    model_config_id: null,
    reasoning_effort: "",
  });
};

/** Stops the workspace and interrupts the turn. Throws 403, 409. */
export const pauseTask = async (ctx: DomainContext, task: TaskRow, caller: UserCaller): Promise<Build> => {
  const build = await createBuild(ctx, task.workspace_id, { transition: "stop", reason: "task_manual_pause" }, caller);
  // An idle chat, or one that does not exist yet, needs no interruption.
  await ctx.chats.ask(task.chat_id, "interrupt", {}).catch(() => {});
  return build;
};

/** Starts the workspace, which also delivers a pending prompt. Throws 403, 409. */
export const resumeTask = async (ctx: DomainContext, task: TaskRow, caller: UserCaller): Promise<Build> => {
  const now = ctx.clock.now();
  const retryWrites =
    task.delivered_at === null
      ? [updateTask(task.id, { problem: "", updated_at: now }), setTimer(TASK, task.id, PROMPT_TIMER, now)]
      : [];
  const body = { transition: "start", reason: "task_resume" } as const;
  const build = await createBuild(ctx, task.workspace_id, body, caller, { extraWrites: retryWrites });
  if (retryWrites.length > 0) ctx.tasks.wait({ task_id: task.id, workspace_id: task.workspace_id });
  return build;
};

/**
 * Deletes the task in one batch with the delete build of its workspace. A timer in the batch archives the chat afterwards. Throws 403, 404,
 * 409.
 */
export const deleteTask = async (ctx: DomainContext, task: TaskRow, caller: UserCaller): Promise<void> => {
  const now = ctx.clock.now();
  const writes = [
    updateTask(task.id, { deleted: true, updated_at: now }, { expect: 1 }),
    setTimer(TASK, task.chat_id, END_CHAT_TIMER, now),
    ...auditTask({ before: task }, now),
  ];
  await createBuild(ctx, task.workspace_id, { transition: "delete" }, caller, { extraWrites: writes }).catch(
    (error) => {
      throw error instanceof CommitError && error.reason === "stale" ? notFound() : error;
    },
  );
};
