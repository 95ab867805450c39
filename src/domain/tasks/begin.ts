// The chat of a task: created with the prompt on the owner's behalf, with the owner's current access, and ended with the task.
import { endChat } from "#actors/chat/end-chat.ts";
import type { TaskKeeperDeps } from "#actors/tasks/keeper.ts";
import { forbidden } from "#base/errors.ts";
import { asHookRefusal } from "#src/hooks/protocol.ts";
import { createChat } from "../chats/create.ts";
import type { DomainContext } from "../context.ts";
import { loadCaller } from "../users/as-caller.ts";
import { toRequest } from "./create.ts";

/** What the task keeper does with chats. */
export const makeTaskChats = (ctx: DomainContext): Pick<TaskKeeperDeps, "begin" | "end"> => ({
  begin: async (task) => {
    const owner = await loadCaller(ctx.store, task.owner_id);
    if (!owner) throw forbidden("The owner's account is suspended or was deleted.");
    const { organization_id, workspace_id, prompt, coding_agent, model_config_id, reasoning_effort } = task;
    const body = {
      organization_id,
      workspace_id,
      content: [{ type: "text", text: prompt }],
      ...(coding_agent === null ? {} : { coding_agent }),
      ...(model_config_id === null ? {} : { model_config_id }),
      reasoning_effort,
    };
    await createChat(ctx, owner, body, toRequest(task.id)).catch((error: unknown) => {
      throw asHookRefusal(error) ?? error;
    });
  },
  end: (chat_id) => endChat(ctx, chat_id),
});
