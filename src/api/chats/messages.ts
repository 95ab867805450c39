// Messages of a chat: sending, editing, paging through the history, and listing the prompts a user has written.
import { t } from "elysia";
import type { ChatPatch } from "#actors/chat/messages.ts";
import { invalid, invalidField, notFound } from "#base/errors.ts";
import { findChat } from "#db/chats/chats.ts";
import { isFullPage, listMessages, listNewestMessages, listPrompts, listQueued } from "#db/chats/messages.ts";
import { admitUserPrompt } from "#domain/chats/admission.ts";
import { loadAttachables } from "#domain/chats/attachments.ts";
import { chooseModel } from "#domain/chats/create.ts";
import { findVisibleChat, loadOwnChat } from "#domain/chats/find.ts";
import { IDEMPOTENCY_HEADERS, parseRequestKey } from "#domain/chats/idempotency.ts";
import { parseBehavior, parseEffort, parsePlanMode, toContent } from "#domain/chats/input.ts";
import { chooseServers } from "#domain/chats/mcp-choice.ts";
import { presentMessage, presentQueued } from "#domain/chats/present.ts";
import { restoreFiles } from "#domain/chats/restore-files.ts";
import { CreatedMessage, CreateMessage, EditedMessage, EditMessage, MessagePage, Prompts } from "#schema/chats/chat.ts";
import { LimitReached } from "#schema/chats/usage-limit.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { requireScope } from "../http/scope-gate.ts";
import { requireNotLoosened } from "./change.ts";
import { chatPath, parseNumber, tags } from "./paths.ts";

const DEFAULT_PAGE_SIZE = 50;
const MAX_PAGE_SIZE = 200;
const DEFAULT_PROMPTS = 500;
const MAX_PROMPTS = 2_000;
const MAX_ID = Number.MAX_SAFE_INTEGER;

type MessageOptions = {
  mcp_server_ids?: string[] | null | undefined;
  model_config_id?: string | undefined;
  plan_mode?: string | undefined;
  reasoning_effort?: string | undefined;
};

/** Returns the changes a message makes to its chat. */
const buildPatch = async (ctx: ApiContext, id: string, input: MessageOptions): Promise<ChatPatch> => {
  const { model_config_id, reasoning_effort, mcp_server_ids, plan_mode } = input;
  const chat = mcp_server_ids ? await ctx.store.get(findChat({ id })) : undefined;
  const patch: ChatPatch = {
    last_model_config_id: model_config_id === undefined ? undefined : chooseModel(ctx, model_config_id),
    last_reasoning_effort: parseEffort(reasoning_effort),
    mcp_server_ids: chat && (await chooseServers(ctx, chat.organization_id, mcp_server_ids, chat.mcp_server_ids)),
    plan_mode: parsePlanMode(plan_mode),
  };
  return Object.fromEntries(Object.entries(patch).filter(([, value]) => value !== undefined));
};

export const chatMessages = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .post(
      "/:chat/messages",
      async ({ caller, params, body, request }) => {
        const request_key = parseRequestKey(request, "send", body);
        const chat = await loadOwnChat(ctx, params.chat, caller);
        const { id } = chat;
        if (caller.is_application) await requireNotLoosened(ctx, id, { plan_mode: body.plan_mode });
        const behavior = parseBehavior(body.busy_behavior);
        const typed = toContent(body.content, await loadAttachables(ctx, caller, body.content, chat));
        const patch = await buildPatch(ctx, id, body);
        const messageAction = { type: "send", behavior } as const;
        const { content, custom_prompt } = await admitUserPrompt(ctx, chat, {
          content: typed,
          command: messageAction,
          request_key,
        });
        const { queued, messages } = await ctx.chats.ask(id, "send", {
          content,
          custom_prompt,
          created_by: caller.user_id,
          behavior,
          patch,
          request_key,
          model_config_id: patch.last_model_config_id ?? null,
          reasoning_effort: patch.last_reasoning_effort ?? "",
        });
        const presentedMessages = messages.map((message) => presentMessage(id, message, caller.compat));
        const message = presentedMessages.findLast(({ role }) => role === "user");
        return {
          queued: queued !== null,
          ...(message ? { message } : {}),
          messages: presentedMessages,
          ...(queued ? { queued_message: presentQueued(id, queued, caller.compat) } : {}),
          warnings: [],
        };
      },
      {
        user: true,
        params: chatPath,
        body: CreateMessage,
        response: { 200: CreatedMessage, ...fails(400, 401, 403, 404, 413, 429, 502), 409: LimitReached },
        detail: operation({
          tags,
          headers: IDEMPOTENCY_HEADERS,
          operationId: "sendMessage",
          summary: "Send a message to a chat",
          description:
            "If the chat is busy, the message is queued (`busy_behavior` `queue`, the default) or interrupts the turn (`interrupt`). Available to the chat's owner. Returns 409 for archived chats.",
          example: { content: [{ type: "text", text: "In one sentence, please." }] },
          access: "owner_only",
          scope: "chat:update",
          placement: "chat",
        }),
      },
    )
    .patch(
      "/:chat/messages/:message",
      async ({ caller, params, body }) => {
        // A restore overwrites files without asking for approval.
        if (body.restore_files === true) requireScope(caller, "workspace:ssh");
        const chat = await loadOwnChat(ctx, params.chat, caller);
        const { id } = chat;
        const message_id = parseNumber("message", params.message);
        const typed = toContent(body.content, await loadAttachables(ctx, caller, body.content, chat));
        const patch = await buildPatch(ctx, id, body);
        const messageAction = { type: "edit", message_id } as const;
        const { content, custom_prompt } = await admitUserPrompt(ctx, chat, { content: typed, command: messageAction });
        const warnings = body.restore_files === true ? await restoreFiles(ctx, id, message_id) : [];
        const { deleted_ids, messages } = await ctx.chats.ask(id, "edit", {
          message_id,
          content,
          custom_prompt,
          created_by: caller.user_id,
          patch,
          model_config_id: patch.last_model_config_id ?? null,
        });
        const presentedMessages = messages.map((message) => presentMessage(id, message, caller.compat));
        const message = presentedMessages.at(-1);
        if (!message) throw notFound();
        return { deleted_message_ids: [...deleted_ids], message, messages: presentedMessages, warnings };
      },
      {
        user: true,
        params: t.Object({ ...chatPath.properties, message: t.String({ description: "The ID of the message." }) }),
        body: EditMessage,
        response: { 200: EditedMessage, ...fails(400, 401, 403, 404, 413, 502), 409: LimitReached },
        detail: operation({
          tags,
          operationId: "editMessage",
          summary: "Edit a message",
          description:
            "Replaces a user's message: the message and all later ones are removed from the history, the queue is cleared, and a new turn starts. With `restore_files`, the workspace's files are restored first, including deleted folders; `warnings` lists files that can't be restored, and 409 means that none can. Commits are kept. A key with scopes also needs `workspace:ssh` to restore files. File checkpoints are kept for the newest 100 messages of a chat, for 30 days.",
          example: { content: [{ type: "text", text: "In two sentences, please." }] },
          access: "owner_only",
          scope: "chat:update",
          placement: "chat",
        }),
      },
    )
    .get(
      "/:chat/messages",
      async ({ caller, params, query, request }) => {
        const { id, key } = await findVisibleChat(ctx, params.chat, caller);
        const { after, before, limit } = toPage(query);
        await ctx.requests.pages.acquireUntilAnswered(request, caller.user_id);
        const ascending = query.after_id !== undefined && query.before_id === undefined;
        const listRows = ascending ? listMessages : listNewestMessages;
        const rows = await ctx.store.scan(listRows({ chat: key, after, before, revision: MAX_ID, limit: limit + 1 }));
        const hasCursor = query.after_id !== undefined || query.before_id !== undefined;
        const queued = hasCursor ? [] : await ctx.store.all(listQueued({ chat: key }));
        return {
          messages: rows.slice(0, limit).map((row) => presentMessage(id, row, caller.compat)),
          queued_messages: queued.map((row) => presentQueued(id, row, caller.compat)),
          has_more: rows.length > limit || isFullPage(rows),
        };
      },
      {
        user: true,
        params: chatPath,
        query: t.Object({
          after_id: t.Optional(t.Integer({ description: "Return only messages with greater IDs, oldest first." })),
          before_id: t.Optional(t.Integer({ description: "Return only messages with smaller IDs." })),
          limit: t.Optional(
            t.Integer({ description: "The maximum number of messages to return, 1 to 200; default 50." }),
          ),
        }),
        response: { 200: MessagePage, ...fails(400, 401, 404) },
        detail: operation({
          tags,
          operationId: "listMessages",
          summary: "List messages of a chat",
          description: "Returns messages, newest first. With only `after_id`, oldest first.",
          access: "owner",
          scope: "chat:read",
          placement: "chat",
        }),
      },
    )
    .get(
      "/:chat/prompts",
      async ({ caller, params, query }) => {
        const { key } = await findVisibleChat(ctx, params.chat, caller);
        const { limit = 0 } = query;
        if (limit < 0 || limit > MAX_PROMPTS) throw invalidField("limit", `must be 0 to ${MAX_PROMPTS}`);
        const rows = await ctx.store.scan(listPrompts({ chat: key, after: 0, limit: limit || DEFAULT_PROMPTS }));
        const prompts = rows.map(({ id, content }) => ({
          id,
          text: content.map((part) => (part.type === "text" ? part.text : undefined) ?? "").join(""),
        }));
        return { prompts: prompts.filter(({ text }) => text.trim() !== "") };
      },
      {
        user: true,
        params: chatPath,
        query: t.Object({
          limit: t.Optional(
            t.Integer({ description: "The maximum number of messages to return, up to 2000. 0 or absent: 500." }),
          ),
        }),
        response: { 200: Prompts, ...fails(400, 401, 404) },
        detail: operation({
          tags,
          operationId: "listPrompts",
          summary: "List user messages of a chat",
          description: "Returns the messages that users wrote, newest first.",
          access: "owner",
          scope: "chat:read",
          placement: "chat",
        }),
      },
    );

const toPage = (query: { after_id?: number; before_id?: number; limit?: number }) => {
  const { after_id: after = 0, before_id: before = MAX_ID, limit = DEFAULT_PAGE_SIZE } = query;
  const problems: { field: string; detail: string }[] = [];
  if (after < 0) problems.push({ field: "after_id", detail: "must be 0 or more" });
  if (before < 0) problems.push({ field: "before_id", detail: "must be 0 or more" });
  else if (after >= before) problems.push({ field: "after_id", detail: "must be below before_id" });
  if (limit < 1 || limit > MAX_PAGE_SIZE) problems.push({ field: "limit", detail: `must be 1 to ${MAX_PAGE_SIZE}` });
  if (problems.length > 0) throw invalid("Query parameters have invalid values.", problems);
  return { after, before, limit };
};
