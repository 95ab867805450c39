// Prepares a model's calls for the hook, and applies the hook's decisions to them. Refuses arguments that the hook's JSON parser could
// read differently than the tool. Used by turn-hooks.ts.
import { parseJson } from "#base/json/read.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import { findMiscasedKey, findRepeatedKey } from "#src/hooks/strict-json.ts";
import type { ToolDefinition } from "#src/llm/model.ts";
import { execute } from "#src/tools/processes/execute.ts";
import { parseCommands } from "#src/tools/processes/parsed-commands.ts";
import { isServerTool } from "#src/tools/registry.ts";
import type { NewMessage } from "../machine/decision.ts";
import { toolMessage } from "../machine/draft.ts";

/** The JSON text of a call's arguments for the hook, or why the call is refused without asking the hook. */
type ProposedInput = { readonly tool_input: string } | { readonly refusal: string };

/**
 * Returns the arguments for the hook. `raw` is the model's own text, if known. The hook gets `raw` unchanged if it is JSON with the same
 * value as `args`, with which the call will run. Otherwise the hook gets `args`.
 */
export const toProposedInput = (
  tool_name: string,
  schema: unknown,
  { args = {}, raw }: { readonly args?: unknown; readonly raw?: string | undefined },
): ProposedInput => {
  const argsJson = JSON.stringify(args);
  const value = raw === undefined ? undefined : tryParse(raw);
  if (raw !== undefined && raw.trim() !== "" && value === undefined && isUnparsed(args, raw))
    return { refusal: INVALID_JSON };
  const repeatedKey = raw === undefined || value === undefined ? undefined : findRepeatedKey(raw);
  const isOurs = isServerTool(tool_name);
  if (isOurs && repeatedKey !== undefined)
    return { refusal: `The arguments have the key "${repeatedKey}" twice. ${DUPLICATE_KEYS}` };
  // Checks the model's text as well, because `args` may lack unknown keys.
  const miscasedKey = isOurs ? (findMiscasedKey(schema, value?.value) ?? findMiscasedKey(schema, args)) : undefined;
  if (miscasedKey !== undefined)
    return { refusal: `The arguments have the key "${miscasedKey}" with different capitalization. ${DUPLICATE_KEYS}` };
  const isExact = raw !== undefined && repeatedKey === undefined && JSON.stringify(value?.value) === argsJson;
  return { tool_input: isExact ? raw : argsJson };
};

/** Returns whether the tool reads the hook's override the same way as any other JSON parser. */
export const isUnambiguousOverride = (tool_name: string, schema: unknown, override: unknown): boolean =>
  !isServerTool(tool_name) || findMiscasedKey(schema, override) === undefined;

/** Returns the call with the hook's arguments. */
export const toRewrittenCall = (part: MessagePart, args: Readonly<Record<string, unknown>>): MessagePart => {
  const { parsed_commands: _, ...call } = part;
  const parsed_commands = part.tool_name === execute.name ? parseCommands(args.command) : undefined;
  return { ...call, args, ...(parsed_commands ? { parsed_commands } : {}), hook_rewritten: true };
};

/** Returns the result of a call that never runs. */
export const toRefusal = ({ tool_call_id = "", tool_name = "" }: MessagePart, error: string, now: number): NewMessage =>
  toolMessage({ tool_call_id, tool_name, result: { error }, is_error: true, now });

export const formatDenial = (reason: string): string => `${POLICY}${reason === "" ? "" : ` ${reason}`}`;

/** Returns the input schema of a call, if the server or the client runs it and the chat offers its tool. */
export const findSchema = (tools: readonly ToolDefinition[], part: MessagePart): unknown =>
  part.type === "tool-call" && !part.provider_executed
    ? tools.find(({ name }) => name === part.tool_name)?.input_schema
    : undefined;

const POLICY = "The policy of this deployment does not allow this call. Do not try to work around it.";
const DUPLICATE_KEYS = "Nothing was done. Call again with each key once, spelled as the tool spells it.";
const INVALID_JSON = "The arguments are not valid JSON. Nothing was done. Call again with complete arguments.";

const tryParse = (text: string): { value: unknown } | undefined => {
  try {
    return { value: parseJson(text) };
  } catch {
    return undefined;
  }
};

/** Recognizes the value that src/llm produces for text it cannot parse. */
const isUnparsed = (args: unknown, raw: string): boolean =>
  typeof args === "object" && args !== null && (args as { input?: unknown }).input === raw;
