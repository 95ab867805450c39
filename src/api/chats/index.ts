// Chats: create, list, read and follow. All changes go through a chat's actor.
import { t } from "elysia";
import { invalidField } from "#base/errors.ts";
import { isUuid } from "#base/ids.ts";
import { listChatsOfWorkspaces } from "#db/chats/views.ts";
import { createChat } from "#domain/chats/create.ts";
import { findVisibleChat, readChat } from "#domain/chats/find.ts";
import { IDEMPOTENCY_HEADERS, parseRequestKey } from "#domain/chats/idempotency.ts";
import { Chat, CreateChat } from "#schema/chats/chat.ts";
import { LimitReached } from "#schema/chats/usage-limit.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { ANY_ID } from "../http/document/example-ids.ts";
import { operation } from "../http/operation.ts";
import { pageQuery, searchQuery } from "../http/paging.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { chatAcl } from "./acl.ts";
import { changeChat } from "./change.ts";
import { compactChat } from "./compact.ts";
import { chatContext } from "./context.ts";
import { chatCost } from "./cost.ts";
import { chatDebug } from "./debug.ts";
import { deleteChat } from "./delete.ts";
import { chatDiff } from "./diff.ts";
import { chatFiles } from "./files.ts";
import { forkChat } from "./fork.ts";
import { chatGit } from "./git.ts";
import { listChats, listShareSubjects } from "./list.ts";
import { localModels } from "./local-models.ts";
import { chatMessages } from "./messages.ts";
import { chatPath, MAX_CHAT_BODY_BYTES, tags } from "./paths.ts";
import { chatPermissions, userPermissions } from "./permissions.ts";
import { chatConfig } from "./settings/config.ts";
import { userChatConfig } from "./settings/config-user.ts";
import { modelConfigs } from "./settings/model-configs.ts";
import { availableModels } from "./settings/models.ts";
import { modelProviders } from "./settings/providers.ts";
import { tryModelConfig } from "./settings/try-model.ts";
import { chatUsageLimits } from "./settings/usage-limits.ts";
import { chatStream } from "./stream.ts";
import { chatTitle } from "./title.ts";
import { chatTrials } from "./trials.ts";
import { chatWatch } from "./watch.ts";

const MAX_WORKSPACES = 25;

/** The same routes under the prefix that older clients use. */
export const experimentalChats = (ctx: ApiContext) => routes({ prefix: "/api/experimental" }).use(chats(ctx));

export const chats = (ctx: ApiContext) =>
  routes({ prefix: "/chats" })
    .use(callers)
    .get(
      "",
      ({ caller, query, request }) =>
        listChats(ctx, caller, { ...query, labels: new URL(request.url).searchParams.getAll("label") }),
      {
        user: true,
        query: t.Object({
          q: searchQuery(
            "A search query of `key:value` terms. Keys: title, archived, has_unread, source, pr_status, diff_url, pr, repo, pr_title, search.",
          ),
          label: t.Optional(
            t.Union([t.String(), t.Array(t.String())], {
              description: "A label as `key:value`. Repeat it to require several labels.",
            }),
          ),
          after_id: pageQuery.after_id,
          limit: t.Optional(t.Integer({ description: "The maximum number of chats to return. 0 or absent: 50." })),
          offset: pageQuery.offset,
        }),
        response: { 200: t.Array(Chat), ...fails(400, 401, 503) },
        detail: operation({
          tags,
          operationId: "listChats",
          summary: "List your chats",
          description: "Returns root chats with their children: pinned chats first, then by last activity.",
          access: "users",
          scope: "chat:read",
        }),
      },
    )
    .post(
      "",
      async ({ caller, body, request, set }) => {
        set.status = 201;
        return createChat(ctx, caller, body, parseRequestKey(request, "create", body));
      },
      {
        user: true,
        body: CreateChat,
        response: { 201: Chat, ...fails(400, 401, 403, 413, 502), 409: LimitReached },
        detail: operation({
          tags,
          headers: IDEMPOTENCY_HEADERS,
          operationId: "createChat",
          summary: "Create a chat",
          description:
            "Creates a chat and starts its first turn immediately. `GET /api/v2/organizations` returns the IDs of organizations.",
          limit: MAX_CHAT_BODY_BYTES,
          example: { organization_id: ANY_ID, content: [{ type: "text", text: "Hello! Who are you?" }] },
          scope: "chat:create",
          placement: "owner",
        }),
      },
    )
    .get(
      "/by-workspace",
      async ({ caller, query }) => {
        const ids = (query.workspace_ids ?? "").split(",").filter((id) => id !== "");
        if (ids.length > MAX_WORKSPACES) throw invalidField("workspace_ids", `must be at most ${MAX_WORKSPACES}`);
        if (!ids.every(isUuid)) throw invalidField("workspace_ids", "must be UUIDs, separated by commas");
        if (ids.length === 0) return {};
        const requested = ids.map((id) => id.toLowerCase());
        const rows = await ctx.store.scan(listChatsOfWorkspaces(caller.user_id, listShareSubjects(caller), requested));
        return Object.fromEntries(rows.map(({ id, workspace_id }) => [workspace_id, id]));
      },
      {
        user: true,
        query: t.Object({
          workspace_ids: t.Optional(
            t.String({ description: "The IDs of the workspaces, comma-separated; at most 25." }),
          ),
        }),
        response: { 200: t.Record(t.String(), t.String({ format: "uuid" })), ...fails(400, 401) },
        detail: operation({
          tags,
          operationId: "listNewestChats",
          summary: "List the newest chat of each workspace",
          access: "users",
          scope: "chat:read",
        }),
      },
    )
    .use(chatWatch(ctx))
    .use(chatFiles(ctx))
    .use(chatConfig(ctx))
    .use(chatUsageLimits(ctx))
    .use(userChatConfig(ctx))
    .use(userPermissions(ctx))
    .use(modelProviders(ctx))
    .use(modelConfigs(ctx))
    .use(tryModelConfig(ctx))
    .use(localModels(ctx))
    .use(availableModels(ctx))
    .get("/:chat", async ({ caller, params }) => readChat(ctx, (await findVisibleChat(ctx, params.chat, caller)).id), {
      user: true,
      params: chatPath,
      response: { 200: Chat, ...fails(400, 401, 404) },
      detail: operation({
        tags,
        operationId: "getChat",
        summary: "Get a chat",
        access: "owner",
        scope: "chat:read",
        placement: "chat",
      }),
    })
    .use(changeChat(ctx))
    .use(chatPermissions(ctx))
    .use(forkChat(ctx))
    .use(chatTrials(ctx))
    .use(compactChat(ctx))
    .use(deleteChat(ctx))
    .use(chatAcl(ctx))
    .use(chatContext(ctx))
    .use(chatDebug(ctx))
    .use(chatCost(ctx))
    .use(chatMessages(ctx))
    .use(chatTitle(ctx))
    .use(chatStream(ctx))
    .use(chatGit(ctx))
    .use(chatDiff(ctx));
