// The table of available tools by kind of chat (facts/chats 5.2), enforced both when tools are offered and when one is called, so that no
// prompt, old history or compaction grants more (rules SB-2, PM-2). Pure.

/** `root`: a user's chat. `plan`: the same in plan mode. The others are sub-chats, by their purpose. */
export const CHAT_MODES = ["root", "plan", "general", "explore", "computer_use"] as const;
export type ChatMode = (typeof CHAT_MODES)[number];

/**
 * `plan_file`: only on the chat's plan file. `read_only`: programs it runs cannot write any other file. `explore_only`: only to start
 * sub-chats of type `explore`. `approved`: only tools that are marked as such.
 */
export type Use = "yes" | "no" | "plan_file" | "read_only" | "explore_only" | "approved";
type Place = "anywhere" | "workspace";
export type Row = readonly [place: Place, root: Use, plan: Use, general: Use, explore: Use, computer: Use];

/** Tools by name; then kinds of external tools. */
export const AVAILABLE = {
  // needs, root, plan, general, explore, computer_use
  read_file: ["workspace", "yes", "yes", "yes", "yes", "yes"],
  write_file: ["workspace", "yes", "plan_file", "yes", "no", "yes"],
  edit_files: ["workspace", "yes", "plan_file", "yes", "no", "yes"],
  execute: ["workspace", "yes", "read_only", "yes", "read_only", "yes"],
  process_output: ["workspace", "yes", "yes", "yes", "yes", "yes"],
  process_list: ["workspace", "yes", "no", "yes", "no", "yes"],
  process_signal: ["workspace", "yes", "no", "yes", "no", "yes"],
  attach_file: ["workspace", "yes", "no", "yes", "no", "yes"],
  computer: ["workspace", "no", "no", "no", "no", "yes"],
  list_templates: ["anywhere", "yes", "no", "no", "no", "no"],
  read_template: ["anywhere", "yes", "no", "no", "no", "no"],
  create_workspace: ["anywhere", "yes", "no", "no", "no", "no"],
  start_workspace: ["workspace", "yes", "no", "no", "no", "no"],
  stop_workspace: ["workspace", "yes", "no", "no", "no", "no"],
  propose_plan: ["workspace", "no", "yes", "no", "no", "no"],
  ask_user_question: ["anywhere", "no", "yes", "no", "no", "no"],
  spawn_agent: ["anywhere", "yes", "explore_only", "no", "no", "no"],
  wait_agent: ["anywhere", "yes", "yes", "no", "no", "no"],
  message_agent: ["anywhere", "yes", "explore_only", "no", "no", "no"],
  interrupt_agent: ["anywhere", "yes", "yes", "no", "no", "no"],
  list_agents: ["anywhere", "yes", "yes", "no", "no", "no"],
  list_subagent_models: ["anywhere", "yes", "yes", "no", "no", "no"],
  read_skill: ["anywhere", "yes", "yes", "yes", "yes", "yes"],
  read_skill_file: ["anywhere", "yes", "yes", "yes", "yes", "yes"],

  workspace_mcp: ["workspace", "yes", "no", "yes", "no", "yes"],
  external_mcp: ["anywhere", "yes", "approved", "yes", "yes", "yes"],
  provider: ["anywhere", "yes", "no", "yes", "no", "yes"],
  dynamic: ["anywhere", "yes", "no", "no", "no", "no"],
} as const satisfies Record<string, Row>;

/** The properties of a chat that determine its tools. */
export type ToolsOf = {
  readonly mode: ChatMode;
  readonly has_workspace: boolean;
  /** The file that can be written in plan mode. */
  readonly plan_path: string;
};

export type Available = keyof typeof AVAILABLE;

/** Returns the table's entry for a tool, or a kind of tools, in such a chat; unknown names are never usable. */
export const lookUpUse = (name: string, { mode, has_workspace }: ToolsOf): Use => {
  const row: Row | undefined = Object.hasOwn(AVAILABLE, name) ? AVAILABLE[name as Available] : undefined;
  if (!row || (row[0] === "workspace" && !has_workspace)) return "no";
  return row[1 + CHAT_MODES.indexOf(mode)] as Use;
};

/**
 * Returns why a call with these arguments is not allowed although the tool is available; undefined if it is. `args` must match the tool's
 * schema.
 */
export const findLimit = (name: string, args: unknown, of: ToolsOf): string | undefined => {
  const use = lookUpUse(name, of);
  const { path, files = [], type } = args as { path?: string; files?: { path: string }[]; type?: string };
  if (use === "plan_file") {
    const paths = [...(path === undefined ? [] : [path]), ...files.map((file) => file.path)];
    const isPlan = paths.length > 0 && paths.every((one) => one === of.plan_path);
    return isPlan ? undefined : `While this chat plans, only its plan may be written: ${of.plan_path}`;
  }
  // The receiver of a message is checked where it is sent.
  if (use === "explore_only" && name === "spawn_agent" && type !== "explore") {
    return "While this chat plans, only agents of the type explore can be started.";
  }
  return undefined;
};

/** Returns the only file that a chat may write in plan mode: in the home folder, so that it appears in no repository. */
export const toPlanPath = (chat_id: string): string => `~/.slipway/plans/${chat_id}.md`;
