// Which tools a chat has, as one table: by what the chat is (facts/chats 5.2), enforced where tools are offered and again where one is
// called, so that no prompt, no old history and no compaction gives more (rules SB-2, PM-2). Pure.

/** root: a chat of a person. plan: the same while it plans. Others are sub-chats, by what they were started for. */
export const CHAT_MODES = ["root", "plan", "general", "explore", "computer_use"] as const;
export type ChatMode = (typeof CHAT_MODES)[number];

/** plan_file: on the chat's plan file alone. read_only: what it runs may write no other file. explore_only: sub-chats that explore. approved: what says so itself. */
export type Use = "yes" | "no" | "plan_file" | "read_only" | "explore_only" | "approved";
type Place = "anywhere" | "workspace";
export type Row = readonly [place: Place, root: Use, plan: Use, general: Use, explore: Use, computer: Use];

/** Tools by name; then what is no tool of ours, by its kind. */
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

/** What decides about a chat's tools. */
export type ToolsOf = {
  readonly mode: ChatMode;
  readonly has_workspace: boolean;
  /** The file that may be written while the chat plans. */
  readonly plan_path: string;
};

export type Available = keyof typeof AVAILABLE;

/** What the table says of a tool, or of a kind of tools, in such a chat; a name it does not know is never to be used. */
export const lookUpUse = (name: string, { mode, has_workspace }: ToolsOf): Use => {
  const row: Row | undefined = Object.hasOwn(AVAILABLE, name) ? AVAILABLE[name as Available] : undefined;
  if (!row || (row[0] === "workspace" && !has_workspace)) return "no";
  return row[1 + CHAT_MODES.indexOf(mode)] as Use;
};

/** Why a call with these arguments may not run though the tool is there; undefined when it may. `args` fit the tool's schema. */
export const findLimit = (name: string, args: unknown, of: ToolsOf): string | undefined => {
  const use = lookUpUse(name, of);
  const { path, files = [], type } = args as { path?: string; files?: { path: string }[]; type?: string };
  if (use === "plan_file") {
    const paths = [...(path === undefined ? [] : [path]), ...files.map((file) => file.path)];
    const isPlan = paths.length > 0 && paths.every((one) => one === of.plan_path);
    return isPlan ? undefined : `While this chat plans, only its plan may be written: ${of.plan_path}`;
  }
  // Whom a message goes to is looked up where it is sent.
  if (use === "explore_only" && name === "spawn_agent" && type !== "explore") {
    return "While this chat plans, only agents of the type explore can be started.";
  }
  return undefined;
};

/** The one file that a chat may write while it plans: in the home folder, so that no repository shows it. */
export const toPlanPath = (chat_id: string): string => `~/.slipway/plans/${chat_id}.md`;
