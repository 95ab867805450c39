// The calls that a model has proposed, before they are stored: what means different things to different parsers is refused, then the hook
// is asked about one call after another. Used by turn-hooks.ts.
import type { MessagePart } from "#schema/chats/chat-part.ts";
import { miscasedKey, repeatedKey } from "#src/hooks/strict-json.ts";
import type { ToolDefinition } from "#src/llm/model.ts";
import { execute } from "#src/tools/processes/execute.ts";
import { parsedCommands } from "#src/tools/processes/parsed-commands.ts";
import { isServerTool } from "#src/tools/registry.ts";
import type { NewMessage } from "../machine/decision.ts";
import { toolMessage } from "../machine/draft.ts";

/** JSON text of a call's input for the hook, or why the call is refused without asking. */
export type ProposedInput = { readonly tool_input: string } | { readonly refusal: string };

/**
 * `raw`: the model's own text, where it is known. It is passed on byte for byte as long as it is one JSON text with the meaning that will
 * be run; what was repaired is passed on as it will be run.
 */
export const proposedInput = (
  tool_name: string,
  schema: unknown,
  { args = {}, raw }: { readonly args?: unknown; readonly raw?: string | undefined },
): ProposedInput => {
  const made = JSON.stringify(args);
  const value = raw === undefined ? undefined : jsonIn(raw);
  if (raw !== undefined && raw.trim() !== "" && value === undefined && isUnread(args, raw)) return { refusal: NO_JSON };
  const twice = raw === undefined || value === undefined ? undefined : repeatedKey(raw);
  const isOurs = isServerTool(tool_name);
  if (isOurs && twice !== undefined) return { refusal: `The arguments have the key "${twice}" twice. ${AGAIN}` };
  // Of the model's own words, too: what nobody knows may have been left out of what will be run.
  const miscased = isOurs ? (miscasedKey(schema, value?.value) ?? miscasedKey(schema, args)) : undefined;
  if (miscased !== undefined) return { refusal: `The arguments have the key "${miscased}" in other letters. ${AGAIN}` };
  const isExact = raw !== undefined && twice === undefined && JSON.stringify(value?.value) === made;
  return { tool_input: isExact ? raw : made };
};

/** True when an override means the same to everyone. */
export const isPlainOverride = (tool_name: string, schema: unknown, override: unknown): boolean =>
  !isServerTool(tool_name) || miscasedKey(schema, override) === undefined;

/** The call as it is stored and run. */
export const rewritten = (part: MessagePart, args: Readonly<Record<string, unknown>>): MessagePart => {
  const { parsed_commands: _, ...call } = part;
  const parsed_commands = part.tool_name === execute.name ? parsedCommands(args.command) : undefined;
  return { ...call, args, ...(parsed_commands ? { parsed_commands } : {}), hook_rewritten: true };
};

/** The answer to a call that is never run. */
export const refusedCall = (
  { tool_call_id = "", tool_name = "" }: MessagePart,
  error: string,
  now: number,
): NewMessage => toolMessage({ tool_call_id, tool_name, result: { error }, is_error: true, now });

export const deniedWords = (reason: string): string => `${POLICY}${reason === "" ? "" : ` ${reason}`}`;

/** The calls of a message that someone here runs and that are tools of this chat. */
export const findSchema = (tools: readonly ToolDefinition[], part: MessagePart): unknown =>
  part.type === "tool-call" && !part.provider_executed
    ? tools.find(({ name }) => name === part.tool_name)?.input_schema
    : undefined;

/** When nothing of a step is stored but what the model has said in words. */
export const wordsOnly = (content: readonly MessagePart[]): MessagePart[] =>
  content.filter(({ type, text }) => type === "text" && text !== undefined && text !== "");

const POLICY = "The policy of this deployment does not allow this call. Do not try to get around it.";
const AGAIN = "Nothing was done. Call again with each key once, spelled as the tool spells it.";
const NO_JSON = "The arguments are no valid JSON. Nothing was done. Call again with whole arguments.";

const jsonIn = (text: string): { value: unknown } | undefined => {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
};

/** What src/llm makes of text that it cannot read. */
const isUnread = (args: unknown, raw: string): boolean =>
  typeof args === "object" && args !== null && (args as { input?: unknown }).input === raw;
