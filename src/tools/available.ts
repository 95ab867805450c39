// Types that decide which tools a chat may use: the kind of chat (facts/chats 5.2), and what a tool may do in it. registry.ts has the
// table. Pure.

/** `root`: a user's chat. `plan`: the same in plan mode. The others are sub-chats, by their purpose. */
export const CHAT_MODES = ["root", "plan", "general", "explore", "computer_use"] as const;
export type ChatMode = (typeof CHAT_MODES)[number];

/**
 * `plan_file`: only on the chat's plan file. `read_only`: programs it runs cannot write any other file. `explore_only`: only to start
 * sub-chats of type `explore`. `approved`: only tools that are marked as such.
 */
export type ToolUse = "yes" | "no" | "plan_file" | "read_only" | "explore_only" | "approved";
type ToolLocation = "anywhere" | "workspace";
/** Where a tool works, and how each kind of chat may use it. */
export type UseRow = readonly [
  place: ToolLocation,
  root: ToolUse,
  plan: ToolUse,
  general: ToolUse,
  explore: ToolUse,
  computer: ToolUse,
];

/** The properties of a chat that decide about its tools. */
export type ChatToolContext = {
  readonly mode: ChatMode;
  /** Whether the chat is in plan mode: a person's chat with the mode `plan`, or a sub-chat with the mode `explore`. */
  readonly is_planning: boolean;
  readonly has_workspace: boolean;
  /** The file that can be written in plan mode. */
  readonly plan_path: string;
};

/** Returns the only file that a chat may write while it plans. It is in the home folder, so that no repository shows it. */
export const toPlanPath = (chat_id: string): string => `~/.slipway/plans/${chat_id}.md`;
