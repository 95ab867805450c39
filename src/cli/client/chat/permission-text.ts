// Formats calls that wait for approval for the person who decides: the whole command or the paths first, without control characters or text
// that changes the direction of writing, and with a note where something is omitted (rule CV-15).

import { escapeAllHidden } from "#base/visible-text.ts";
import type { ToolCallRequest } from "#schema/chats/chat-event.ts";
import { toPlainLine } from "../../text.ts";

/** Number of characters shown of a value. Commands are shown in full. */
const MAX_VALUE_LENGTH = 400;
const MAX_LINE_LENGTH = 200;

const indent = (text: string): string => `    ${text.replaceAll("\n", "\n    ")}\n`;

const parseArgs = ({ args }: Pick<ToolCallRequest, "args">): Record<string, unknown> => {
  try {
    const value: unknown = JSON.parse(args);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : { args: value };
  } catch {
    return { args };
  }
};

/** Returns the command of `execute`; undefined for other tools. */
const findCommand = (call: Pick<ToolCallRequest, "tool_name" | "args">): string | undefined => {
  const { command } = parseArgs(call);
  return call.tool_name === "execute" && typeof command === "string" ? command : undefined;
};

/** Formats a request on several lines: the tool, then its command or arguments. `title` is the title of the sub-chat that requests it. */
export const formatRequest = (call: ToolCallRequest, title?: string): string => {
  const requester = title === undefined ? "The model" : `The agent "${toPlainLine(title)}"`;
  const head = `${requester} asks to use ${toPlainLine(call.tool_name)}:\n`;
  const command = findCommand(call);
  const { command: _, ...others } = parseArgs(call);
  const shownArgs = command === undefined ? parseArgs(call) : others;
  const lines = Object.entries(shownArgs).map(([name, value]) =>
    indent(`${toPlainLine(name)}: ${truncateValue(value)}`),
  );
  return head + (command === undefined ? "" : indent(`$ ${escapeAllHidden(command)}`)) + lines.join("");
};

const truncateValue = (value: unknown): string => {
  const text = escapeAllHidden(typeof value === "string" ? value : (JSON.stringify(value) ?? ""));
  const omittedCount = text.length - MAX_VALUE_LENGTH;
  return omittedCount > 0 ? `${text.slice(0, MAX_VALUE_LENGTH)}… (${omittedCount} more characters)` : text;
};

/** Formats a request on one line, for logs. */
export const formatRequestLine = (call: ToolCallRequest): string => {
  const text = escapeAllHidden(findCommand(call) ?? call.args).replaceAll("\n", "\\n");
  return `${toPlainLine(call.tool_name)} ${text.length > MAX_LINE_LENGTH ? `${text.slice(0, MAX_LINE_LENGTH)}…` : text}`;
};
