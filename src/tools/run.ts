// Runs one call of a tool and always has an answer: a tool that is not there, arguments that do not fit and everything that goes wrong
// become results the model can read (facts/chats 5.3). Called by turns, outside of every mailbox.
import { Value } from "@sinclair/typebox/value";
import { AppError } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { inSpan } from "#base/spans.ts";
import { findLimit, lookUpUse } from "./available.ts";
import { cutResult } from "./cut.ts";
import { type ToolsOf, toolsFor } from "./registry.ts";
import type { ToolResult } from "./result.ts";
import { type Tool, type ToolContext, ToolError } from "./tool.ts";

/** Bytes of one result: three for each token of a third of the model's context, so that a few fit in (facts/chats 5.3). */
export const resultLimit = (context_limit: number): number =>
  context_limit <= 0 ? UNKNOWN_LIMIT : Math.min(MAX_BYTES, Math.max(MIN_BYTES, context_limit));

const UNKNOWN_LIMIT = 65_536;
const MIN_BYTES = 16_384;
/** Larger results would hold up anyone who stores and follows them, however much a model can read. */
const MAX_BYTES = 262_144;
const ERRORS_SHOWN = 5;

export type ToolAnswer = { readonly result: ToolResult; readonly is_error: boolean };
export type ToolCall = { readonly tool_name: string; readonly args: unknown };

/**
 * `other`: what the name means when it is no tool of ours. Rejects only when `signal` fires, with its reason, immediately or when the
 * tool has noticed.
 */
export const runTool = (
  chat: ToolsOf,
  call: ToolCall,
  context: ToolContext,
  signal: AbortSignal,
  other?: Tool,
): Promise<ToolAnswer> =>
  inSpan(
    () => {
      // A name that no tool has is the model's own words.
      const known = other ?? toolsFor(chat).find(({ name }) => name === call.tool_name);
      const name = known ? call.tool_name : "unknown";
      const attributes = { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name };
      return { name: `execute_tool ${name}`, attributes };
    },
    async (span) => {
      const answer = await answerCall(chat, call, context, signal, other);
      if (answer.is_error) span?.fail("tool_error");
      return answer;
    },
  );

const answerCall = async (
  chat: ToolsOf,
  { tool_name, args }: ToolCall,
  context: ToolContext,
  signal: AbortSignal,
  other?: Tool,
): Promise<ToolAnswer> => {
  const found = toolsFor(chat).find(({ name }) => name === tool_name) ?? other;
  if (!found) return failed(`The tool "${tool_name}" cannot be used in this chat now.`);
  const given = args ?? {};
  const problem = argumentsProblem(found, given);
  if (problem !== undefined) return failed(problem);
  const limit = findLimit(tool_name, given, chat);
  if (limit !== undefined) return failed(limit);
  try {
    return {
      result: cutResult(
        context.mask.result(await found.run(heldBack(context, tool_name, chat), given, signal)),
        resultLimit(context.context_limit),
      ),
      is_error: false,
    };
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    const { mask } = context;
    if (error instanceof ToolError) return failed(mask.text(error.message), mask.result(error.more));
    if (error instanceof AppError && error.kind !== "internal") return failed(mask.text(formatError(error)));
    log("chats").error("the tool {tool_name} broke: {error}", { tool_name, error });
    return failed("The tool failed for a reason of its own. Try another way.");
  }
};

/** Why the tool does not take these arguments, in words for the model; undefined when it does. */
export const argumentsProblem = ({ input_schema }: Pick<Tool, "input_schema">, args: unknown): string | undefined => {
  const given = args ?? {};
  if (Value.Check(input_schema, given)) return undefined;
  if (isCutOff(given)) return CUT_OFF;
  const problems = [...Value.Errors(input_schema, given)].slice(0, ERRORS_SHOWN);
  const words = problems.map(({ path, message }) => `${path.slice(1).replaceAll("/", ".") || "arguments"}: ${message}`);
  return `The arguments do not fit. ${words.join("; ")}`;
};

/** With what may be written, where what is run may not write everything. */
const heldBack = (context: ToolContext, tool_name: string, chat: ToolsOf): ToolContext =>
  lookUpUse(tool_name, chat) === "read_only"
    ? { ...context, writable_only: chat.mode === "plan" ? [chat.plan_path] : [] }
    : context;

/** What src/llm makes of arguments that are no JSON. */
const isCutOff = (args: unknown): boolean =>
  typeof args === "object" && args !== null && Object.keys(args).join() === "input" && "input" in args
    ? typeof args.input === "string"
    : false;

const CUT_OFF =
  "The arguments do not fit. They are no whole JSON: probably they were cut off at the limit of the answer. Nothing was done. Call again with less in one call.";

const formatError = ({ message, detail, validations }: AppError): string =>
  [message, ...validations.map((one) => `${one.field} ${one.detail}.`), detail].filter((part) => part !== "").join(" ");

const failed = (error: string, more: ToolResult = {}): ToolAnswer => ({
  result: cutResult({ ...more, error }, UNKNOWN_LIMIT),
  is_error: true,
});
