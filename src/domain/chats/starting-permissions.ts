// The permissions of a new chat. A person's chat in a workspace on the server's machine asks before it changes anything, until the person
// says otherwise; chats of programs start with the deployment's permissions (rules PE-9, PE-12).
import { forbidden } from "#base/errors.ts";
import { readChatSetting, readUserChatSetting } from "#db/chats/settings.ts";
import type { Store } from "#db/engine/store.ts";
import { findTemplateEvenDeleted } from "#db/templates/templates.ts";
import { findWorkspacePlace } from "#db/workspaces/workspaces.ts";
import type { ChatPermissions, PermissionMode } from "#schema/chats/chat-permissions.ts";
import { applyPermissionMode, isLooserMode, requireAsking, toPermissionMode } from "#src/tools/permission-mode.ts";
import { LOCAL_PROVISIONER } from "../builds/local-rule.ts";

type NewChat = {
  readonly owner_id: string;
  readonly client_type: "api" | "ui";
  readonly workspace_id: string | null;
  readonly plan_mode: "plan" | null;
  readonly permission_mode: PermissionMode | undefined;
  /** Validated; undefined when the request has none. */
  readonly permissions: ChatPermissions | null | undefined;
  /** An application creates the chat: it gets no more than the person's other chats. */
  readonly is_application?: boolean | undefined;
};

/** Rejects with 403 when an application asks for more than the person's new chats are allowed. */
export const loadStartingPermissions = async (
  store: Store,
  chat: NewChat,
): Promise<{ readonly permissions: ChatPermissions | null; readonly plan_mode: "plan" | null }> => {
  const { permission_mode, plan_mode } = chat;
  if (chat.is_application) await requireNoMoreThanDefault(store, chat);
  const permissions = chat.permissions === undefined ? await loadDefaultPermissions(store, chat) : chat.permissions;
  return permission_mode === undefined
    ? { permissions, plan_mode }
    : applyPermissionMode(permission_mode, { permissions, plan_mode });
};

const requireNoMoreThanDefault = async (store: Store, chat: NewChat): Promise<void> => {
  const { permission_mode, permissions } = chat;
  if (permission_mode === undefined && permissions === undefined) return;
  const usual = await loadDefaultPermissions(store, chat);
  const mode = toPermissionMode({ permissions: usual, plan_mode: null });
  const hasOwnRules = permissions !== undefined && usual !== null;
  if (!hasOwnRules && !isLooserMode(permission_mode ?? mode, mode)) return;
  throw forbidden("An application cannot allow a chat more than your other new chats.");
};

/** Returns the user's default, or else the deployment's; on the server's machine, at least with approval. */
const loadDefaultPermissions = async (
  store: Store,
  { owner_id, client_type, workspace_id }: NewChat,
): Promise<ChatPermissions | null> => {
  const own = await readUserChatSetting(store, owner_id, "permissions");
  if (own !== null) return own;
  const permissions = await readChatSetting(store, "permissions");
  const asks = client_type === "ui" && workspace_id !== null && (await isOnServer(store, workspace_id));
  return asks ? requireAsking(permissions) : permissions;
};

/** Returns whether a chat that gets this workspace now must ask from now on, like one that starts there. */
export const shouldAskIn = async (
  store: Store,
  { owner_id, client_type }: Pick<NewChat, "owner_id" | "client_type">,
  workspace_id: string,
): Promise<boolean> =>
  client_type === "ui" &&
  (await isOnServer(store, workspace_id)) &&
  (await readUserChatSetting(store, owner_id, "permissions")) === null;

/** Returns whether only the operating system isolates the workspace from the server or a worker. */
const isOnServer = async (store: Store, workspace_id: string): Promise<boolean> => {
  const place = await store.get(findWorkspacePlace({ id: workspace_id }));
  const template = place && (await store.get(findTemplateEvenDeleted({ id: place.template_id })));
  return template?.provisioner === LOCAL_PROVISIONER;
};
