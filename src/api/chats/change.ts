// Changes a chat and controls its turn: metadata, archive, queue, interrupt, tool results.
import { t } from "elysia";
import { admitResults } from "#actors/chat/hooks/results.ts";
import type { NewMessage, ToolResult } from "#actors/chat/machine/decision.ts";
import type { ChangeChat, ChatPatch } from "#actors/chat/messages.ts";
import { AppError, forbidden, invalidField } from "#base/errors.ts";
import { NIL_UUID } from "#base/ids.ts";
import { type ChatAccessRow, findChat } from "#db/chats/chats.ts";
import { resolveWorkspace } from "#domain/chats/create.ts";
import { findChangeableChat, loadOwnChat, readChat } from "#domain/chats/find.ts";
import { IDEMPOTENCY_HEADERS, isRepeated, parseRequestKey } from "#domain/chats/idempotency.ts";
import { checkModes, parsePlanMode, parseTitle, toLabels } from "#domain/chats/input.ts";
import { toPermissions } from "#domain/chats/permission-rules.ts";
import { shouldAskIn } from "#domain/chats/starting-permissions.ts";
import { Chat, ToolResults, UpdateChat } from "#schema/chats/chat.ts";
import { isLooserMode, toPermissionMode } from "#src/tools/permission-mode.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import type { UserCaller } from "../http/caller.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, Generic, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { chatPath, MAX_CHAT_BODY_BYTES, parseNumber, tags } from "./paths.ts";

const queuedPath = t.Object({
  ...chatPath.properties,
  queuedMessage: t.String({ description: "The ID of the queued message." }),
});

/** All fields are validated before any is changed (facts/chats 9). */
const buildPatch = async (
  ctx: ApiContext,
  caller: UserCaller,
  chat: ChatAccessRow,
  body: UpdateChat,
): Promise<Pick<ChangeChat, "patch" | "permission_mode" | "asks" | "pin">> => {
  const { title, labels, permission_mode, plan_mode, workspace_id, pin_order } = body;
  if (pin_order !== undefined && pin_order < 0) throw invalidField("pin_order", "must be 0 or more");
  if (pin_order !== undefined && chat.parent_chat_id !== null) {
    throw new AppError("invalid", "Only root chats can be pinned.");
  }
  const patch: ChatPatch = {};
  if (title !== undefined) patch.title = parseTitle(title);
  if (labels) patch.labels = toLabels(labels);
  if (body.permissions !== undefined) patch.permissions = toPermissions(body.permissions);
  const mode = parsePlanMode(plan_mode);
  if (mode !== undefined) patch.plan_mode = mode;
  if (workspace_id !== undefined) {
    const isDetached = workspace_id === NIL_UUID;
    patch.workspace_id = isDetached ? null : await resolveWorkspace(ctx, caller, chat.organization_id, workspace_id);
  }
  checkModes(permission_mode, mode);
  if (caller.is_application) await requireNotLoosened(ctx, chat.id, body);
  // A coding agent's options include modes without approvals.
  if (caller.is_application && body.agent_options)
    throw forbidden("An application cannot set a coding agent's options.");
  const change = { patch, pin: pin_order ?? null };
  const asks = await shouldStartAsking(ctx, chat.id, patch, caller);
  if (permission_mode === undefined) return { ...change, asks };
  // An application must not turn off approvals on the server's machine, even for a chat that needs none in other workspaces.
  if (caller.is_application && asks && isLooserMode(permission_mode, "ask")) throw makePermissionError();
  return { ...change, permission_mode };
};

/**
 * Rejects with 403 if an application would give the chat more permissions, including by ending plan mode: the chat would keep them after
 * the application's authorization has ended (rule OA-23).
 */
export const requireNotLoosened = async (
  { store }: Pick<ApiContext, "store">,
  id: string,
  { permissions, permission_mode, plan_mode }: Pick<UpdateChat, "permissions" | "permission_mode" | "plan_mode">,
): Promise<void> => {
  if (permissions === undefined && permission_mode === undefined && plan_mode === undefined) return;
  const chat = await store.get(findChat({ id }));
  const current = { permissions: chat?.permissions ?? null, plan_mode: chat?.plan_mode ?? null };
  const withPlanMode = plan_mode === undefined ? current : { ...current, plan_mode: parsePlanMode(plan_mode) ?? null };
  const nextMode = permission_mode ?? toPermissionMode(withPlanMode);
  if (permissions === undefined && !isLooserMode(nextMode, toPermissionMode(current))) return;
  throw makePermissionError();
};

const makePermissionError = (): AppError => forbidden("An application cannot allow a chat to do more.");

/**
 * Returns whether the chat must ask for permission after this change. It must if it moves into a workspace on the server's machine, was
 * started in the UI or is moved by an application, and neither the request nor its owner sets permissions.
 */
const shouldStartAsking = async (
  { store }: ApiContext,
  id: string,
  patch: ChatPatch,
  { is_application }: UserCaller,
): Promise<boolean> => {
  const { workspace_id, permissions } = patch;
  if (!workspace_id || permissions !== undefined) return false;
  const chat = await store.get(findChat({ id }));
  if (chat === undefined || chat.workspace_id === workspace_id) return false;
  return shouldAskIn(store, chat, workspace_id, { is_application });
};

/** Returns the messages that hooks add to the results. Results that would be rejected are rejected before any hook is called. */
const loadHookMessages = async (
  { hooks, chats, store }: ApiContext,
  id: string,
  results: readonly ToolResult[],
): Promise<readonly NewMessage[]> => {
  if (hooks.isOff) return [];
  await chats.ask(id, "check", { type: "complete", results });
  const chat = await store.get(findChat({ id }));
  return chat ? admitResults(hooks, chat, results) : [];
};

export const changeChat = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .patch(
      "/:chat",
      async ({ caller, params, body, set }) => {
        const chat = await findChangeableChat(ctx, params.chat, caller);
        const change = await buildPatch(ctx, caller, chat, body);
        const { archived, permission_mode, agent_options } = body;
        const hasDirectChange =
          [archived, permission_mode, agent_options].some((one) => one !== undefined) || change.pin !== null;
        if (hasDirectChange || Object.keys(change.patch).length > 0) {
          await ctx.chats.ask(chat.id, "change", {
            ...(archived === undefined ? {} : { archived }),
            ...(agent_options === undefined ? {} : { agent_options }),
            ...change,
          });
        }
        set.status = 204;
      },
      {
        user: true,
        params: chatPath,
        body: UpdateChat,
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 409) },
        detail: operation({
          tags,
          operationId: "updateChat",
          summary: "Update a chat",
          description:
            "Applies all changes or none. Archiving a chat also archives its sub-chats, and returns 409 while one of them is active. Sub-chats also inherit permission changes. A change of `permission_mode` applies from the next tool call, even during a turn; calls already waiting for approval must still be answered.",
          example: { title: "Greetings" },
          audit: target.writes(target.chat),
          access: "owner",
          scope: "chat:update",
          placement: "chat",
        }),
      },
    )
    .post(
      "/:chat/interrupt",
      async ({ caller, params }) => {
        const { id } = await findChangeableChat(ctx, params.chat, caller);
        await ctx.chats.ask(id, "interrupt", {});
        return readChat(ctx, id);
      },
      {
        user: true,
        params: chatPath,
        response: { 200: Chat, ...fails(400, 401, 404, 409) },
        detail: operation({
          tags,
          operationId: "interruptChat",
          summary: "Interrupt a chat",
          description:
            "Interrupts the current turn. The partial response is kept. Sub-chats that the turn waits for are also interrupted; others continue.",
          access: "owner",
          scope: "chat:update",
          placement: "chat",
        }),
      },
    )
    .delete(
      "/:chat/queue/:queuedMessage",
      async ({ caller, params, set }) => {
        const { id } = await findChangeableChat(ctx, params.chat, caller);
        await ctx.chats.ask(id, "deleteQueued", { queued_id: parseNumber("queuedMessage", params.queuedMessage) });
        set.status = 204;
      },
      {
        user: true,
        params: queuedPath,
        response: { 204: NoContent, ...fails(400, 401, 404, 409) },
        detail: operation({
          tags,
          operationId: "deleteQueuedMessage",
          summary: "Delete a queued message",
          access: "owner",
          scope: "chat:update",
          placement: "chat",
        }),
      },
    )
    .post(
      "/:chat/queue/:queuedMessage/promote",
      async ({ caller, params, set }) => {
        const { id } = await loadOwnChat(ctx, params.chat, caller);
        await ctx.chats.ask(id, "promoteQueued", { queued_id: parseNumber("queuedMessage", params.queuedMessage) });
        set.status = 202;
        return { message: "The queued message is next." };
      },
      {
        user: true,
        params: queuedPath,
        response: { 202: Generic, ...fails(400, 401, 403, 404, 409) },
        detail: operation({
          tags,
          operationId: "promoteQueuedMessage",
          summary: "Promote a queued message",
          description: "Interrupts the current turn and sends the message immediately.",
          access: "owner_only",
          scope: "chat:update",
          placement: "chat",
        }),
      },
    )
    .post(
      "/:chat/tool-results",
      async ({ caller, params, body, request, set }) => {
        const request_key = parseRequestKey(request, "results", body);
        const { id, key } = await loadOwnChat(ctx, params.chat, caller);
        const results = body.results.map(({ is_error = false, ...result }) => ({ ...result, is_error }));
        const messages = (await isRepeated(ctx, key, request_key)) ? [] : await loadHookMessages(ctx, id, results);
        await ctx.chats.ask(id, "completeAction", { results, rows: messages, request_key });
        set.status = 204;
      },
      {
        user: true,
        params: chatPath,
        body: ToolResults,
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 409, 413, 502) },
        detail: operation({
          tags,
          headers: IDEMPOTENCY_HEADERS,
          operationId: "submitToolResults",
          summary: "Submit tool results",
          description:
            "Submits the results of all pending calls, each exactly once. Returns 409 if no call is pending.",
          limit: MAX_CHAT_BODY_BYTES,
          example: { results: [{ tool_call_id: "call_1", output: { answer: 42 } }] },
          access: "owner_only",
          scope: "chat:update",
          placement: "chat",
        }),
      },
    )
    .post(
      "/:chat/reconcile-invalid",
      async ({ caller, params }) => {
        const { id } = await findChangeableChat(ctx, params.chat, caller);
        await ctx.chats.ask(id, "reconcile", {});
        return readChat(ctx, id);
      },
      {
        user: true,
        params: chatPath,
        detail: operation({
          tags,
          operationId: "reconcileChat",
          summary: "Recover a chat from an invalid state",
          access: "owner",
          scope: "chat:update",
          placement: "chat",
        }),
        response: { 200: Chat, ...fails(400, 401, 404, 409) },
      },
    );
