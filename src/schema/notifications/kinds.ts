// The kinds of notifications with their texts. The senders (src/domain and actors) fill in the placeholders, such as `{workspace}`.

export type NoticeKind = {
  readonly id: string;
  readonly name: string;
  readonly group: string;
  readonly title: string;
  readonly body: string;
  /** The label of the link to the subject of the notification. */
  readonly action: string;
  /** Whether the kind is sent by email by default, if email is configured. Subscribed browsers get all kinds. */
  readonly mail: boolean;
};

const WORKSPACES = "Workspace events";
const CHATS = "Chat events";
const ADMINISTRATION = "Administration";

export const NOTICE_KINDS = {
  workspace_build_failed: {
    id: "6f1c2b7a-1d0e-4a53-9c35-52f4a7be0001",
    name: "Build failed",
    group: WORKSPACES,
    mail: true,
    title: "Workspace {workspace} failed to {transition}",
    body: "Build {number} failed: {error}",
    action: "View build",
  },
  workspace_stops_soon: {
    id: "6f1c2b7a-1d0e-4a53-9c35-52f4a7be0002",
    name: "Stops soon",
    group: WORKSPACES,
    mail: false,
    title: "Workspace {workspace} stops soon",
    body: "It stops at {time} unless it is used or extended.",
    action: "Open workspace",
  },
  workspace_dormant: {
    id: "6f1c2b7a-1d0e-4a53-9c35-52f4a7be0003",
    name: "Dormant",
    group: WORKSPACES,
    mail: true,
    title: "Workspace {workspace} is dormant",
    body: "It was not used for a while. {deletion}",
    action: "Open workspace",
  },
  workspace_deleted_soon: {
    id: "6f1c2b7a-1d0e-4a53-9c35-52f4a7be0004",
    name: "Deleted soon",
    group: WORKSPACES,
    mail: true,
    title: "Workspace {workspace} will be deleted soon",
    body: "It is dormant and will be deleted at {time}. Wake it up to keep it.",
    action: "Open workspace",
  },
  workspace_deleted: {
    id: "6f1c2b7a-1d0e-4a53-9c35-52f4a7be0005",
    name: "Deleted",
    group: WORKSPACES,
    mail: true,
    title: "Workspace {workspace} was deleted",
    body: "{reason}",
    action: "View workspaces",
  },
  workspace_disk_full: {
    id: "6f1c2b7a-1d0e-4a53-9c35-52f4a7be0006",
    name: "Disk nearly full",
    group: WORKSPACES,
    mail: true,
    title: "The disk of {workspace} is {level}",
    body: "{used} of {total} are used in {path}. Delete files that you no longer need.",
    action: "Open workspace",
  },
  workspace_out_of_memory: {
    id: "6f1c2b7a-1d0e-4a53-9c35-52f4a7be0007",
    name: "Out of memory",
    group: WORKSPACES,
    mail: true,
    title: "{workspace} ran out of memory",
    body: "The kernel killed {process}. Run fewer programs at a time, or give the workspace more memory.",
    action: "Open workspace",
  },
  workspace_files_replaced: {
    id: "6f1c2b7a-1d0e-4a53-9c35-52f4a7be0008",
    name: "Files replaced",
    group: WORKSPACES,
    mail: true,
    title: "The files of {workspace} were replaced",
    body: "Somebody else restored a snapshot of it. The audit log says who did.",
    action: "Open the workspace",
  },
  workspace_port_public: {
    id: "6f1c2b7a-1d0e-4a53-9c35-52f4a7be0009",
    name: "Port made public",
    group: WORKSPACES,
    mail: true,
    title: "{person} made port {port} of {workspace} public",
    body: "Anyone can open it without signing in. Stop sharing it on the workspace's page if you don't want that.",
    action: "Open workspace",
  },
  workspace_agent_ended: {
    id: "6f1c2b7a-1d0e-4a53-9c35-52f4a7be000a",
    name: "Agent signed out",
    group: WORKSPACES,
    mail: true,
    title: "Restart {workspace}",
    body: "Two programs connected as its agent {agent} while someone lost access, and one of them may be theirs. Both were signed out. Restart the workspace to continue.",
    action: "Open workspace",
  },
  workspace_shared: {
    id: "6f1c2b7a-1d0e-4a53-9c35-52f4a7be000b",
    name: "Workspace shared with you",
    group: WORKSPACES,
    mail: true,
    title: "{by} shared the workspace {workspace} with you",
    body: "You can see it and work in it{access}.",
    action: "Open workspace",
  },
  chat_needs_you: {
    id: "6f1c2b7a-1d0e-4a53-9c35-52f4a7be0011",
    name: "Chat needs you",
    group: CHATS,
    mail: false,
    title: "{chat} needs you",
    body: "It is waiting for an answer or your approval.",
    action: "Open chat",
  },
  chat_done: {
    id: "6f1c2b7a-1d0e-4a53-9c35-52f4a7be0012",
    name: "Chat is done",
    group: CHATS,
    mail: false,
    title: "{chat} is done",
    body: "Its turn has ended.",
    action: "Open chat",
  },
  chat_failed: {
    id: "6f1c2b7a-1d0e-4a53-9c35-52f4a7be0013",
    name: "Chat failed",
    group: CHATS,
    mail: false,
    title: "{chat} stopped with an error",
    body: "{error}",
    action: "Open chat",
  },
  chat_shared: {
    id: "6f1c2b7a-1d0e-4a53-9c35-52f4a7be0014",
    name: "Chat shared with you",
    group: CHATS,
    mail: true,
    title: "{by} shared a chat with you",
    body: "You can read and follow {chat}.",
    action: "Open chat",
  },
  user_created: {
    id: "6f1c2b7a-1d0e-4a53-9c35-52f4a7be0021",
    name: "User created",
    group: ADMINISTRATION,
    mail: false,
    title: "User {user} was created",
    body: "The account was created by {initiator}.",
    action: "View users",
  },
  rights_taken: {
    id: "6f1c2b7a-1d0e-4a53-9c35-52f4a7be0023",
    name: "Roles or memberships removed",
    group: ADMINISTRATION,
    mail: true,
    title: "Your roles or memberships were removed",
    body: "{provider} no longer gives you {lost}. If that is a mistake, ask an administrator.",
    action: "Open account settings",
  },
  provider_change_kept: {
    id: "6f1c2b7a-1d0e-4a53-9c35-52f4a7be0024",
    name: "Profile change not applied",
    group: ADMINISTRATION,
    mail: true,
    title: "Your {what} was not changed",
    body: "{provider} reports {value}, which another account already uses. Yours is still {kept}. An administrator can rename the other account.",
    action: "Open account settings",
  },
  sign_in_linked: {
    id: "6f1c2b7a-1d0e-4a53-9c35-52f4a7be0025",
    name: "Sign-in added",
    group: ADMINISTRATION,
    mail: true,
    title: "You can now sign in with {provider}",
    body: "{provider} was added to your account. All other sessions ended, and your tokens and application grants were revoked: create the ones you still need again. If you did not do this, ask an administrator to remove the sign-in.",
    action: "Open account settings",
  },
  sign_in_replaced: {
    id: "6f1c2b7a-1d0e-4a53-9c35-52f4a7be0042",
    name: "Sign-in replaced",
    group: ADMINISTRATION,
    mail: true,
    title: "You now sign in with {provider}",
    body: "{provider} replaced the password of your account. All other sessions ended, and your tokens and application grants were revoked: create the ones you still need again. If you did not do this, ask an administrator to remove the sign-in.",
    action: "Open account settings",
  },
  key_created: {
    id: "6f1c2b7a-1d0e-4a53-9c35-52f4a7be0026",
    name: "Token created for you",
    group: ADMINISTRATION,
    mail: true,
    title: "{person} created a token for your account",
    body: "The token ({name}) acts as you until it expires or you delete it. If you don't expect it, delete it and ask {person} about it.",
    action: "View tokens",
  },
  budget_nearly_used: {
    id: "6f1c2b7a-1d0e-4a53-9c35-52f4a7be0031",
    name: "Budget nearly used up",
    group: ADMINISTRATION,
    mail: true,
    title: "{budget} is nearly used up",
    body: "{used} has been used. The budget resets at {time}.",
    action: "View budgets",
  },
  budget_used_up: {
    id: "6f1c2b7a-1d0e-4a53-9c35-52f4a7be0032",
    name: "Budget used up",
    group: ADMINISTRATION,
    mail: true,
    title: "{budget} is used up",
    body: "Chats wait and the AI gateway rejects calls until the budget is raised or resets at {time}. The limit is {limit}.",
    action: "View budgets",
  },
  home_backup_failed: {
    id: "6f1c2b7a-1d0e-4a53-9c35-52f4a7be0041",
    name: "Home backup failed",
    group: ADMINISTRATION,
    mail: true,
    title: "The backup of {workspace} {what}",
    body: "{error}",
    action: "View backups",
  },
  template_deprecated: {
    id: "6f1c2b7a-1d0e-4a53-9c35-52f4a7be0022",
    name: "Template deprecated",
    group: WORKSPACES,
    mail: true,
    title: "Template {template} is deprecated",
    body: "You have a workspace created from it. {message}",
    action: "View template",
  },
  test: {
    id: "6f1c2b7a-1d0e-4a53-9c35-52f4a7be00ff",
    name: "Test",
    group: ADMINISTRATION,
    mail: true,
    title: "Test notification",
    body: "Notifications are working.",
    action: "Open Slipway",
  },
} as const satisfies Record<string, NoticeKind>;

export type NoticeName = keyof typeof NOTICE_KINDS;

export const findNoticeKind = (template_id: string): NoticeKind | undefined =>
  Object.values<NoticeKind>(NOTICE_KINDS).find(({ id }) => id === template_id);

/** Maximum length of a value chosen by other people. */
const MAX_VALUE_LENGTH = 300;

/** Returns the text with all placeholders filled in; missing values are left empty. */
export const fillPlaceholders = (template: string, values: Readonly<Record<string, string>>): string =>
  template
    .replaceAll(/\{(\w+)\}/g, (_, name: string) =>
      (Object.hasOwn(values, name) ? (values[name] ?? "") : "").slice(0, MAX_VALUE_LENGTH),
    )
    .trim();
