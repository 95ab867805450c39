// The permissions of a new chat. A person's or an application's chat in a workspace on the server's machine asks before it changes anything,
// until the person says otherwise; chats of other programs start with the deployment's permissions (rules PE-9, PE-12).
import { forbidden } from "#base/errors.ts";
import { readChatSetting, readUserChatSetting } from "#db/chats/settings.ts";
import type { Store } from "#db/engine/store.ts";
import { findTemplateEvenDeleted } from "#db/templates/templates.ts";
import { findUser } from "#db/users/users.ts";
import { findWorkspaceAccessRow } from "#db/workspaces/workspaces.ts";
import type { ChatPermissions, PermissionMode } from "#schema/chats/chat-permissions.ts";
import { applyPermissionMode, isLooserMode, requireAsking, toPermissionMode } from "#src/tools/permission-mode.ts";
import { canHaveLocal, explainNoLocal, LOCAL_PROVISIONER } from "../builds/local-rule.ts";
import type { DomainContext } from "../context.ts";

type Deps = Pick<DomainContext, "store" | "config">;

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
  deps: Deps,
  chat: NewChat,
): Promise<{ readonly permissions: ChatPermissions | null; readonly plan_mode: "plan" | null }> => {
  const { permission_mode, plan_mode } = chat;
  if (chat.is_application) await requireNoMoreThanDefault(deps, chat);
  const permissions = chat.permissions === undefined ? await loadDefaultPermissions(deps, chat) : chat.permissions;
  return permission_mode === undefined
    ? { permissions, plan_mode }
    : applyPermissionMode(permission_mode, { permissions, plan_mode });
};

const requireNoMoreThanDefault = async (deps: Deps, chat: NewChat): Promise<void> => {
  const { permission_mode, permissions } = chat;
  if (permission_mode === undefined && permissions === undefined) return;
  const defaults = await loadDefaultPermissions(deps, chat);
  const mode = toPermissionMode({ permissions: defaults, plan_mode: null });
  const hasOwnRules = permissions !== undefined && defaults !== null;
  if (!hasOwnRules && !isLooserMode(permission_mode ?? mode, mode)) return;
  throw forbidden("An application cannot allow a chat more than your other new chats.");
};

/** Returns the user's default, or else the deployment's; on the server's machine, changes at least require approval. */
const loadDefaultPermissions = async (deps: Deps, chat: NewChat): Promise<ChatPermissions | null> => {
  const { store } = deps;
  const userDefault = await readUserChatSetting(store, chat.owner_id, "permissions");
  if (userDefault !== null) return userDefault;
  const permissions = await readChatSetting(store, "permissions");
  return (await mustAsk(deps, chat)) ? requireAsking(permissions) : permissions;
};

const mustAsk = async (
  { store, config }: Deps,
  { owner_id, client_type, workspace_id, is_application = false }: NewChat,
): Promise<boolean> => {
  if (client_type !== "ui" && !is_application) return false;
  if (workspace_id !== null) return isOnServer(store, workspace_id);
  // The model of an application's chat can create the workspace later.
  if (!is_application || explainNoLocal(config) !== undefined) return false;
  return canHaveLocal(config, (await store.get(findUser({ id: owner_id })))?.roles ?? []);
};

/** Returns whether a chat must ask from now on because it gets this workspace, like a chat that starts in it. */
export const shouldAskIn = async (
  store: Store,
  { owner_id, client_type }: Pick<NewChat, "owner_id" | "client_type">,
  workspace_id: string,
  { is_application = false }: Pick<NewChat, "is_application"> = {},
): Promise<boolean> =>
  (client_type === "ui" || is_application) &&
  (await isOnServer(store, workspace_id)) &&
  (await readUserChatSetting(store, owner_id, "permissions")) === null;

/** Returns whether only the operating system isolates the workspace from the server or a worker. */
const isOnServer = async (store: Store, workspace_id: string): Promise<boolean> => {
  const workspace = await store.get(findWorkspaceAccessRow({ id: workspace_id }));
  const template = workspace && (await store.get(findTemplateEvenDeleted({ id: workspace.template_id })));
  return template?.provisioner === LOCAL_PROVISIONER;
};
