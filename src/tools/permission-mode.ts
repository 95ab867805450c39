// Permission modes: one name for what a chat may do without asking where no rule fits. A mode is stored as `permissions.default` and
// `plan_mode`, so rules, planning and sub-chats keep working as they do without it (rules PE-11 to PE-13). Pure.
import type { ChatPermissions, PermissionAction, PermissionMode } from "#schema/chats/chat-permissions.ts";
import type { Use } from "./available.ts";
import { whyItMayWrite } from "./processes/read-only-commands.ts";

/** Tools that change nothing outside of the chat itself. Every other one, also of a client or an MCP server, asks. */
const LOOKS: ReadonlySet<string> = new Set([
  ...["read_file", "attach_file", "process_output", "process_list", "read_skill", "read_skill_file"],
  ...["list_templates", "read_template", "list_agents", "list_subagent_models", "wait_agent"],
  ...["spawn_agent", "message_agent", "interrupt_agent"],
  ...["propose_plan", "ask_user_question"],
]);
const EDITS: ReadonlySet<string> = new Set(["write_file", "edit_files"]);

export const isEdit = (tool_name: string): boolean => EDITS.has(tool_name);

type Stored = { readonly permissions: ChatPermissions | null; readonly plan_mode: "plan" | null };
type Default = ChatPermissions["default"];

const DEFAULTS: Readonly<Record<Exclude<PermissionMode, "plan">, Default>> = {
  ask: "ask_changes",
  accept_edits: "accept_edits",
  allow: "allow",
};

/** The mode of a chat. What asks or refuses more than any mode is `ask`. */
export const toPermissionMode = ({ permissions, plan_mode }: Stored): PermissionMode => {
  if (plan_mode !== null) return "plan";
  const fallback = permissions?.default ?? "allow";
  return fallback === "allow" || fallback === "accept_edits" ? fallback : "ask";
};

/** What a chat stores from now on. Its rules stay, and a default that is stricter than the mode `ask` is one. */
export const withPermissionMode = (mode: PermissionMode, now: Stored): Stored => {
  if (mode === "plan") return { permissions: now.permissions, plan_mode: "plan" };
  const base = { permissions: now.permissions, plan_mode: null };
  if (toPermissionMode(base) === mode) return base;
  return { permissions: { default: DEFAULTS[mode], rules: now.permissions?.rules ?? [] }, plan_mode: null };
};

/** The same, with approval for whatever changes something where they ask for less. */
export const askingPermissions = (permissions: ChatPermissions | null): ChatPermissions =>
  permissions !== null && toPermissionMode({ permissions, plan_mode: null }) === "ask"
    ? permissions
    : { default: "ask_changes", rules: permissions?.rules ?? [] };

export type CallPlace = {
  /** What the chat's kind makes of the tool (available.ts). */
  readonly use: Use;
  /** The agent's folder, where it is known. */
  readonly folder: string | undefined;
};

/** What happens to a call that no rule names. */
export const defaultAction = (
  fallback: Default,
  { tool_name, args }: { readonly tool_name: string; readonly args: unknown },
  { use, folder }: CallPlace,
): PermissionAction => {
  if (fallback === "allow" || fallback === "ask" || fallback === "deny") return fallback;
  if (LOOKS.has(tool_name)) return "allow";
  // Where a chat only looks around, its plan is all it writes, and what it runs is held back besides.
  if (use === "plan_file") return "allow";
  if (use === "read_only") return whyItMayWrite(commandIn(args)) === undefined ? "allow" : "ask";
  const accepts = fallback === "accept_edits" && EDITS.has(tool_name);
  const paths = pathsIn(args);
  return accepts && paths.length > 0 && paths.every((path) => isPlainPath(path, folder)) ? "allow" : "ask";
};

/** The shell text of `execute`; empty for anything else. */
export const commandIn = (args: unknown): string => {
  const command = typeof args === "object" && args !== null && "command" in args ? args.command : "";
  return typeof command === "string" ? command : "";
};

/** Returns the files that an edit names. */
export const pathsIn = (args: unknown): readonly unknown[] => {
  const { path, files } = (typeof args === "object" && args !== null ? args : {}) as {
    path?: unknown;
    files?: unknown;
  };
  const named = Array.isArray(files) ? files.map((file: { path?: unknown } | null) => file?.path) : [];
  return path === undefined ? named : [path, ...named];
};

/** Below the agent's folder, and nothing hidden: what is there may be run by git, a shell or an editor. */
export const isPlainPath = (path: unknown, folder: string | undefined): boolean => {
  if (typeof path !== "string") return false;
  const root = folder === undefined ? undefined : `${folder.replace(/\/+$/, "")}/`;
  const inside = root !== undefined && path.startsWith(root) ? path.slice(root.length) : path;
  if (inside.startsWith("/") || inside.startsWith("~")) return false;
  return inside.split("/").every((part, at) => (part === "." ? at === 0 : !part.startsWith(".")));
};
