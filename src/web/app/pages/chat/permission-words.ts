// A call that waits for permission, in words. Pure.
import type { ToolCallRequest } from "#schema/chats/chat-event.ts";
import { argsOf, toolWords } from "./tool-words.ts";

const argsIn = ({ args }: ToolCallRequest) => argsOf({ type: "tool-call", args_delta: args });

export const titleOf = (one: ToolCallRequest): string =>
  one.tool_name === "execute" ? "Run this command?" : `${toolWords(one.tool_name, argsIn(one)).verb}?`;

export const detailOf = (one: ToolCallRequest): string => {
  const args = argsIn(one);
  if (one.tool_name === "execute") return String(args.command ?? one.args);
  return JSON.stringify(args, null, 2);
};

/** What a shell could turn into something else: of such a command the server keeps no rule (src/tools/permission.ts). */
const NOT_PLAIN = /[;&|<>()$`'"\\\n*?[\]{}~#!]/;

/** The rule the server would keep: the tool, or the first words of the command; undefined when it would keep none. */
export const alwaysWords = (one: ToolCallRequest): string | undefined => {
  if (one.tool_name !== "execute") return "Always allow this tool";
  const command = String(argsIn(one).command ?? "").trim();
  if (command === "" || NOT_PLAIN.test(command) || /^\w+=/.test(command)) return undefined;
  const words = command.split(/\s+/);
  return `Always allow ${(words[1]?.startsWith("-") ? words : words.slice(0, 2)).join(" ")}`;
};
