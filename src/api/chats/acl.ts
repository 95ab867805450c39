// Sharing of a chat (facts/chats 4.17): users and groups on the list can read the chat and its sub-chats. The chat's owner and site owners
// edit the list; if the organization forbids sharing, every edit is rejected with 403.
import { AppError, forbidden, invalid, type Validation } from "#base/errors.ts";
import type { ChatAccessRow } from "#db/chats/chats.ts";
import { type ChatShareChange, listChatShares } from "#db/chats/shares.ts";
import { findMemberWithUser } from "#db/users/members.ts";
import { listMinimalUsers } from "#db/users/users.ts";
import { findSharingDisabled } from "#db/workspaces/sharing.ts";
import { canShareChat, canUpdateChat } from "#domain/access.ts";
import { findVisibleChat } from "#domain/chats/find.ts";
import { checkGroups, presentGroupRoles, type RoleChanges, readRoleChanges } from "#domain/groups/acl.ts";
import { getOrganization } from "#domain/organizations/find.ts";
import { ChatAcl, PatchChatAcl } from "#schema/chats/chat-acl.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { ANY_ID } from "../http/document/example-ids.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { chatPath, tags } from "./paths.ts";

const user = true;
const params = chatPath;
/** Maximum entries in one request. More than a person would send; limited because each entry is looked up. */
const MAX_CHANGES = 500;
const CHAT_ROLES = ["read"] as const;

export const chatAcl = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get("/:chat/acl", async ({ caller, params }) => presentAcl(ctx, await findShareable(ctx, params.chat, caller)), {
      user,
      params,
      response: { 200: ChatAcl, ...fails(400, 401, 403, 404) },
      detail: operation({
        tags,
        operationId: "getChatAcl",
        summary: "Get a chat's access list",
        description: "Available to the chat's owner. Sub-chats share the access list of their root chat.",
        access: "owner",
        scope: "chat:read",
        placement: "chat",
      }),
    })
    .patch(
      "/:chat/acl",
      async ({ caller, params, body, status }) => {
        const chat = await findShareable(ctx, params.chat, caller);
        const problems: Validation[] = [];
        const user_roles = readRoleChanges("user_roles", body.user_roles, CHAT_ROLES, problems);
        const group_roles = readRoleChanges("group_roles", body.group_roles, CHAT_ROLES, problems);
        const users = toShareChanges("user", user_roles);
        const groups = toShareChanges("group", group_roles);
        const isShared = [...users, ...groups].some(({ role }) => role !== null);
        if (isShared && !canShareChat(caller, chat))
          throw forbidden("You are not a member of the chat's organization, so you can only stop sharing the chat.");
        if (users.length + groups.length > MAX_CHANGES) {
          problems.push({ field: "user_roles", detail: `must be at most ${MAX_CHANGES} per request` });
        } else await checkUsers(ctx, chat, caller, users, problems);
        await checkGroups(ctx.store, chat.organization_id, "group_roles", group_roles, problems);
        if (problems.length > 0) throw invalid("Validation failed.", problems);
        await ctx.chats.ask(chat.id, "share", { changes: [...users, ...groups], by: caller.username });
        ctx.topics.publish("notified", chat.id, {});
        return status(204, undefined);
      },
      {
        user,
        params,
        body: PatchChatAcl,
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 409, 413, 503) },
        detail: operation({
          tags,
          operationId: "updateChatAcl",
          summary: "Update a chat's access list",
          description:
            "Gives users and groups the role `read`: they can see and follow the chat with its sub-chats, messages and files, but can't write. An empty string removes the role. Users who gain access are notified; members of a group are not. Users who lose access are disconnected immediately.",
          example: { group_roles: { [ANY_ID]: "read" } },
          audit: target.writes(target.chat),
          access: "owner",
          scope: "chat:share",
          changesAccess: "chat:share",
          placement: "chat",
        }),
      },
    );

/**
 * Rejects with 404 for callers without access, with 403 for callers who can only read and where sharing is disabled, and with 400 for
 * sub-chats.
 */
const findShareable = async (ctx: ApiContext, id: string, caller: UserCaller): Promise<ChatAccessRow> => {
  const chat = await findVisibleChat(ctx, id, caller);
  if (!canUpdateChat(caller, chat)) throw forbidden("Only the owner of a chat can share it.");
  if (chat.parent_chat_id !== null) throw new AppError("invalid", "Sub-chats are shared with their root chat.");
  if (await ctx.store.get(findSharingDisabled({ organization_id: chat.organization_id }))) {
    throw forbidden("Chats of this organization can't be shared.");
  }
  return chat;
};

const presentAcl = async ({ store }: ApiContext, chat: ChatAccessRow): Promise<ChatAcl> => {
  const shares = await store.all(listChatShares({ chat: chat.key }));
  const filterShares = (kind: "user" | "group") => shares.filter((share) => share.kind === kind);
  const toRoles = (kind: "user" | "group") =>
    Object.fromEntries(filterShares(kind).map((share) => [share.subject, share.role]));
  const ids = JSON.stringify(filterShares("user").map(({ subject }) => subject));
  const users = await store.all(listMinimalUsers({ ids }));
  const organization = await getOrganization(store, chat.organization_id);
  return {
    users: users.map((user) => ({ ...user, role: "read" })),
    groups: await presentGroupRoles(store, organization, toRoles("group")),
    user_roles: toRoles("user"),
    group_roles: toRoles("group"),
  };
};

const toShareChanges = (kind: "user" | "group", changes: RoleChanges<"read">): ChatShareChange[] =>
  Object.entries(changes).map(([subject, role]) => ({ kind, subject, role: role === "" ? null : role }));

const checkUsers = async (
  { store }: ApiContext,
  { organization_id, owner_id }: ChatAccessRow,
  caller: UserCaller,
  changes: readonly ChatShareChange[],
  problems: Validation[],
): Promise<void> => {
  for (const { subject: user_id, role } of changes) {
    const addProblem = (detail: string) => problems.push({ field: `user_roles.${user_id}`, detail });
    if (user_id === caller.user_id) addProblem("you cannot change your own role");
    else if (user_id === owner_id) addProblem("is the owner of the chat");
    else if (role !== null && !(await store.get(findMemberWithUser({ organization_id, user_id })))) {
      addProblem("is not a member of the chat's organization");
    }
  }
};
