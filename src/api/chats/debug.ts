// Recorded model calls of a chat (facts/chats 4.18), for its owner and site owners but not for users it is shared with.
import { t } from "elysia";
import { toRfc3339 } from "#base/clock.ts";
import { notFound } from "#base/errors.ts";
import type { ChatAccessRow } from "#db/chats/chats.ts";
import { type ChatRunRow, type ChatRunStepRow, findRun, listRuns, listSteps } from "#db/chats/runs.ts";
import { findChangeableChat } from "#domain/chats/find.ts";
import { ChatRun, type ChatRunStep, ChatRunWithSteps } from "#schema/chats/chat-debug.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { chatPath, tags } from "./paths.ts";

const user = true;

export const chatDebug = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:chat/debug/runs",
      async ({ caller, params }) => {
        const chat = await findChangeableChat(ctx, params.chat, caller);
        const rows = await ctx.store.scan(listRuns({ chat: chat.key }));
        return rows.map((row) => presentRun(chat, row));
      },
      {
        user,
        params: chatPath,
        response: { 200: t.Array(ChatRun), ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "listChatRuns",
          summary: "List recorded runs of a chat",
          description:
            "Returns runs without their steps, newest first; at most 100. Empty unless the deployment or the owner has enabled recording.",
          access: "owner",
          scope: "chat:read",
          placement: "chat",
        }),
      },
    )
    .get(
      "/:chat/debug/runs/:run",
      async ({ caller, params }) => {
        const chat = await findChangeableChat(ctx, params.chat, caller);
        const row = await ctx.store.get(findRun({ id: params.run.toLowerCase() }));
        if (!row || row.chat !== chat.key) throw notFound();
        const steps = await ctx.store.scan(listSteps({ run: row.key }));
        return { ...presentRun(chat, row), steps: steps.map((step) => presentStep(row.id, step)) };
      },
      {
        user,
        params: t.Object({
          ...chatPath.properties,
          run: t.String({ format: "uuid", description: "The ID of the run." }),
        }),
        response: { 200: ChatRunWithSteps, ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "getChatRun",
          summary: "Get a recorded run of a chat",
          access: "owner",
          scope: "chat:read",
          placement: "chat",
        }),
      },
    );

const presentRun = (chat: ChatAccessRow, row: ChatRunRow): ChatRun => {
  const { id, kind, status, provider, model, summary, trigger_message_id, history_tip_message_id } = row;
  const { parent_chat_id } = chat;
  return {
    id,
    chat_id: chat.id,
    kind,
    status,
    provider,
    model,
    summary,
    ...(parent_chat_id === null ? {} : { parent_chat_id, root_chat_id: parent_chat_id }),
    ...(trigger_message_id === null ? {} : { trigger_message_id }),
    ...(history_tip_message_id === null ? {} : { history_tip_message_id }),
    started_at: toRfc3339(row.started_at),
    updated_at: toRfc3339(row.updated_at),
    ...(row.finished_at === null ? {} : { finished_at: toRfc3339(row.finished_at) }),
  };
};

const presentStep = (run_id: string, step: ChatRunStepRow): ChatRunStep => {
  const { number, operation, status, request, response, usage, error } = step;
  return {
    run_id,
    step_number: number,
    operation,
    status,
    request,
    response,
    ...(usage === null ? {} : { usage }),
    ...(error === null ? {} : { error }),
    started_at: toRfc3339(step.started_at),
    finished_at: toRfc3339(step.finished_at),
  };
};
