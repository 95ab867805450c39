// Tool permissions: answers to pending calls, and the default rules of a user's new chats (rules PE-1 to PE-9).
import { t } from "elysia";
import { forbidden, invalid } from "#base/errors.ts";
import { readUserChatSetting } from "#db/chats/settings.ts";
import { readApprovals, requireScopeToAllow } from "#domain/chats/approvals.ts";
import { requireUsableWorkspace } from "#domain/chats/create.ts";
import { loadOwnChat } from "#domain/chats/find.ts";
import { COMMAND_PROBLEM, toPermissions } from "#domain/chats/permission-rules.ts";
import { setUserChatSetting } from "#domain/chats/settings.ts";
import { loadStartingPermissions } from "#domain/chats/starting-permissions.ts";
import { ChatApprovals } from "#schema/chats/chat-approval.ts";
import { ChatPermissions, PermissionAnswers, PermissionMode } from "#schema/chats/chat-permissions.ts";
import { named } from "#schema/shape-names.ts";
import { isCommandPrefix } from "#src/tools/permission.ts";
import { toPermissionMode } from "#src/tools/permission-mode.ts";
import * as setting from "../audit/setting-targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { chatPath, MAX_CHAT_BODY_BYTES, tags } from "./paths.ts";

export const chatPermissions = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:chat/permissions",
      async ({ caller, params }) => readApprovals(ctx, (await loadOwnChat(ctx, params.chat, caller)).id),
      {
        user: true,
        params: chatPath,
        response: { 200: ChatApprovals, ...fails(400, 401, 403, 404, 409) },
        detail: operation({
          tags,
          operationId: "listApprovals",
          summary: "List calls waiting for approval",
          description:
            "Returns edits and new files as diffs against the current files, and commands with their parts and folder. Empty if no call is waiting.",
          access: "owner_only",
          scope: "chat:read",
          placement: "chat",
        }),
      },
    )
    .post(
      "/:chat/permissions",
      async ({ caller, params, body, set }) => {
        const { id } = await loadOwnChat(ctx, params.chat, caller);
        // The rule would apply even after the application's authorization has ended.
        if (
          caller.is_application &&
          body.answers.some(({ decision, scope }) => decision === "allow" && scope === "always")
        )
          throw forbidden("An application cannot allow a call always. Answer it once.");
        for (const [index, { command }] of body.answers.entries()) {
          if (command === undefined || isCommandPrefix(command)) continue;
          throw invalid("Invalid answers.", [{ field: `answers.${index}.command`, detail: COMMAND_PROBLEM }]);
        }
        await requireScopeToAllow(ctx, id, caller, body.answers);
        await ctx.chats.ask(id, "answerPermissions", body);
        set.status = 204;
      },
      {
        user: true,
        params: chatPath,
        body: PermissionAnswers,
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 409, 413) },
        detail: operation({
          tags,
          operationId: "answerPermissions",
          summary: "Answer calls waiting for approval",
          description:
            "Answers every call listed in `action_required` (kind `permission`), each exactly once. Allowed calls run; denied calls return an error to the model. Returns 409 if no call is waiting. A key with scopes also needs `workspace:ssh` to allow a start with parameter values.",
          example: { answers: [{ tool_call_id: "call_1", decision: "allow", scope: "once" }] },
          access: "owner_only",
          scope: "chat:update",
          placement: "chat",
        }),
      },
    );

const Permissions = named("NewChatPermissions", t.Object({ permissions: t.Union([ChatPermissions, t.Null()]) }));

const StartingPermissions = named(
  "StartingPermissions",
  t.Object({ permission_mode: PermissionMode, permissions: t.Union([ChatPermissions, t.Null()]) }),
);

/** Routes below `/chats/config`. */
export const userPermissions = (ctx: ApiContext) =>
  routes({ prefix: "/config" })
    .use(callers)
    .get(
      "/user-permissions",
      async ({ caller }) => ({ permissions: await readUserChatSetting(ctx.store, caller.user_id, "permissions") }),
      {
        user: true,
        response: { 200: Permissions, ...fails(401) },
        detail: operation({
          tags,
          operationId: "getUserPermissions",
          summary: "Get the permissions of your new chats",
          access: "users",
          scope: "chat_config:read",
        }),
      },
    )
    .get(
      "/starting-permissions",
      async ({ caller, query }) => {
        const { workspace_id } = query;
        const starting = await loadStartingPermissions(ctx, {
          owner_id: caller.user_id,
          client_type: "ui",
          workspace_id:
            workspace_id === undefined ? null : (await requireUsableWorkspace(ctx, caller, workspace_id)).id,
          plan_mode: null,
          permission_mode: undefined,
          permissions: undefined,
        });
        return { permission_mode: toPermissionMode(starting), permissions: starting.permissions };
      },
      {
        user: true,
        query: t.Object({
          workspace_id: t.Optional(t.String({ format: "uuid", description: "The ID of the workspace of the chat." })),
        }),
        response: { 200: StartingPermissions, ...fails(400, 401) },
        detail: operation({
          tags,
          operationId: "getStartingPermissions",
          summary: "Get the permissions a new chat would have",
          description:
            "Returns the permissions of a new `ui` chat in the given workspace, or without a workspace. In a workspace on the server's own machine, the chat asks before it changes anything, unless you have set permissions for your new chats.",
          access: "users",
          scope: "chat_config:read",
        }),
      },
    )
    .put(
      "/user-permissions",
      async ({ caller, body, status }) => {
        await setUserChatSetting(ctx, caller, "permissions", toPermissions(body.permissions));
        return status(204, undefined);
      },
      {
        user: true,
        body: Permissions,
        response: { 204: NoContent, ...fails(400, 401, 413) },
        detail: operation({
          tags,
          operationId: "setUserPermissions",
          summary: "Update the permissions of your new chats",
          description: "Sets the permissions of new chats. Existing chats are unchanged.",
          limit: MAX_CHAT_BODY_BYTES,
          example: {
            permissions: { default: "allow", rules: [{ tool: "execute", command: "rm", action: "ask" }] },
          },
          audit: setting.writesUserSetting("permissions"),
          access: "users",
          outlivesGrant: true,
          scope: ["chat_config:update", "workspace:ssh"],
        }),
      },
    );
