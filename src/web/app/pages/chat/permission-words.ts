// The text for a call that waits for approval. Pure.
import type { ToolCallRequest } from "#schema/chats/chat-event.ts";
import type { PermissionRule } from "#schema/chats/chat-permissions.ts";
import { describeTool, parseArgs } from "./tool-words.ts";

export const parseArguments = ({ args }: Pick<ToolCallRequest, "args">) =>
  parseArgs({ type: "tool-call", args_delta: args });

const getFileName = (path: unknown): string => (typeof path === "string" ? (path.split("/").at(-1) ?? path) : "a file");

const WRITE_VERBS = { true: "Create", false: "Replace", undefined: "Write" } as const;

/** Returns the question. `isNew`: the file does not exist yet; undefined until that is known. */
export const formatQuestion = (request: ToolCallRequest, isNew: boolean | undefined): string => {
  const args = parseArguments(request);
  if (request.tool_name === "execute") return "Run this command?";
  if (request.tool_name === "write_file") return `${WRITE_VERBS[`${isNew}`]} ${getFileName(args.path)}?`;
  if (request.tool_name === "edit_files") {
    const files = Array.isArray(args.files) ? (args.files as { path?: unknown }[]) : [];
    return files.length === 1 ? `Edit ${getFileName(files[0]?.path)}?` : `Edit ${files.length} files?`;
  }
  const [server, ...tool] = request.tool_name.split("__");
  if (tool.length > 0) return `Use ${tool.join("__").replaceAll("_", " ")} of ${server}?`;
  return `${describeTool(request.tool_name, args).verb}?`;
};

/** Shortens a folder below the home of its workspace to `~`: on the server's machine the full path is long. */
export const shortenFolder = (folder: string, workspace_id: string | undefined): string => {
  const home = `/workspaces/${workspace_id}/home`;
  const [before, ...rest] = folder.split(home);
  const path = rest.join(home);
  return before === folder || (path !== "" && !path.startsWith("/")) ? folder : `~${path}`;
};

/** A longer label would not fit on a phone. */
const MAX_LABEL_LENGTH = 28;

/** Returns the label of the button that stores these rules; undefined if none exist. */
export const formatAlwaysLabel = (rules: readonly PermissionRule[]): string | undefined => {
  const [first] = rules;
  if (!first) return undefined;
  const commands = rules.flatMap(({ command }) => (command === undefined ? [] : [command]));
  if (commands.length === 0) return "Always allow this tool";
  const commandList = commands.join(", ");
  return commandList.length > MAX_LABEL_LENGTH && commands.length > 1
    ? `Always allow these ${commands.length} commands`
    : `Always allow ${commandList}`;
};

/** An argument of a call as a form row: name, value, and whether the value is text. */
export type ArgumentRow = { readonly name: string; readonly value: string; readonly isText: boolean };

/** Converts the arguments to form rows. A value that is not an object becomes one row. */
export const toRows = (request: ToolCallRequest): readonly ArgumentRow[] => {
  let parsed: unknown;
  try {
    parsed = JSON.parse(request.args);
  } catch {
    parsed = request.args;
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) return [toRow("Arguments", parsed)];
  return Object.entries(parsed).map(([name, value]) => toRow(name, value));
};

const toRow = (name: string, value: unknown): ArgumentRow => {
  if (typeof value === "string") return { name, value, isText: true };
  if (typeof value === "boolean") return { name, value: value ? "Yes" : "No", isText: true };
  return { name, value: JSON.stringify(value, null, 2), isText: typeof value !== "object" };
};
