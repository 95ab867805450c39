// The chat of a task: made with the prompt in the owner's name, with the rights that the owner has then, and ended with the task.
import type { TaskKeeperDeps } from "#actors/tasks/keeper.ts";
import { AppError, forbidden } from "#base/errors.ts";
import { findChat } from "#db/chats/chats.ts";
import { createChat } from "../chats/create.ts";
import type { DomainContext } from "../context.ts";
import { asCaller } from "../users/as-caller.ts";
import { toRequest } from "./create.ts";

/** What the keeper of tasks does to chats. */
export const taskChats = (ctx: DomainContext): Pick<TaskKeeperDeps, "begin" | "end"> => ({
  begin: async (task) => {
    const owner = await asCaller(ctx.store, task.owner_id);
    if (!owner) throw forbidden("The owner may not do anything now.");
    const { organization_id, workspace_id, prompt, coding_agent, model_config_id, reasoning_effort } = task;
    const body = {
      organization_id,
      workspace_id,
      content: [{ type: "text", text: prompt }],
      ...(coding_agent === null ? {} : { coding_agent }),
      ...(model_config_id === null ? {} : { model_config_id }),
      reasoning_effort,
    };
    await createChat(ctx, owner, body, toRequest(task.id));
  },
  end: async (chat_id) => {
    const chat = await ctx.store.get(findChat({ id: chat_id }));
    if (!chat || chat.archived) return;
    // What does not run cannot be interrupted; what is still ending is archived at the next try.
    await ctx.chats.ask(chat_id, "interrupt", {}).catch(notNow);
    await ctx.chats.ask(chat_id, "change", { archived: true, patch: {}, pin: null });
  },
});

const notNow = (error: unknown): void => {
  if (!(error instanceof AppError) || error.kind !== "conflict") throw error;
};
