// Runs one tool call and always returns a result: an unknown tool, invalid arguments and all errors become results that the model can read
// (facts/chats 5.3). Called by turns, outside of every mailbox.
import { Value } from "@sinclair/typebox/value";
import { AppError } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { runInNewSpan } from "#base/spans.ts";
import { truncateResult } from "./cut.ts";
import { type ChatToolContext, explainLimit, findToolUse, listTools } from "./registry.ts";
import type { ToolResult } from "./result.ts";
import { type Tool, type ToolContext, ToolError } from "./tool.ts";

/**
 * Returns the maximum size of one result: three bytes for each token of a third of the model's context, so that several fit (facts/chats
 * 5.3).
 */
export const computeResultLimit = (context_limit: number): number =>
  context_limit <= 0 ? DEFAULT_RESULT_BYTES : Math.min(MAX_BYTES, Math.max(MIN_BYTES, context_limit));

const DEFAULT_RESULT_BYTES = 65_536;
const MIN_BYTES = 16_384;
/** Absolute limit: larger results would slow down storage and followers, whatever the model's context. */
const MAX_BYTES = 262_144;
const MAX_ERRORS_SHOWN = 5;

export type ToolAnswer = { readonly result: ToolResult; readonly is_error: boolean };
export type ToolCall = { readonly tool_name: string; readonly args: unknown };

/**
 * Runs a call. `other`: the tool with this name if it is not a server tool. Rejects only with the reason of `signal`, immediately or when
 * the tool has noticed it.
 */
export const runTool = (
  chat: ChatToolContext,
  call: ToolCall,
  context: ToolContext,
  signal: AbortSignal,
  other?: Tool,
): Promise<ToolAnswer> =>
  runInNewSpan(
    () => {
      // The name of an unknown tool is text from the model.
      const known = other ?? listTools(chat).find(({ name }) => name === call.tool_name);
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
  chat: ChatToolContext,
  { tool_name, args }: ToolCall,
  context: ToolContext,
  signal: AbortSignal,
  other?: Tool,
): Promise<ToolAnswer> => {
  const found = listTools(chat).find(({ name }) => name === tool_name) ?? other;
  if (!found) return toFailedAnswer(`The tool "${tool_name}" cannot be used in this chat now.`);
  const givenArgs = args ?? {};
  const problem = findArgumentsProblem(found, givenArgs);
  if (problem !== undefined) return toFailedAnswer(problem);
  const limit = explainLimit(tool_name, givenArgs, chat);
  if (limit !== undefined) return toFailedAnswer(limit);
  try {
    const refusal = await context.services.findTurnRefusal();
    if (refusal !== undefined) return toFailedAnswer(refusal);
    return {
      result: truncateResult(
        context.mask.result(await found.run(restrictWrites(context, tool_name, chat), givenArgs, signal)),
        computeResultLimit(context.context_limit),
      ),
      is_error: false,
    };
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    const { mask } = context;
    if (error instanceof ToolError) return toFailedAnswer(mask.text(error.message), mask.result(error.more));
    if (error instanceof AppError && error.kind !== "internal") return toFailedAnswer(mask.text(formatError(error)));
    log("chats").error("the tool {tool_name} broke: {error}", { tool_name, error });
    return toFailedAnswer("The tool failed for a reason of its own. Try another way.");
  }
};

/** Returns why the tool rejects these arguments, as a message for the model; undefined if it accepts them. */
export const findArgumentsProblem = (
  { input_schema }: Pick<Tool, "input_schema">,
  args: unknown,
): string | undefined => {
  const givenArgs = args ?? {};
  if (Value.Check(input_schema, givenArgs)) return undefined;
  if (isCutOff(givenArgs)) return CUT_OFF_MESSAGE;
  const problems = [...Value.Errors(input_schema, givenArgs)].slice(0, MAX_ERRORS_SHOWN);
  const problemTexts = problems.map(
    ({ path, message }) => `${path.slice(1).replaceAll("/", ".") || "arguments"}: ${message}`,
  );
  return `The arguments do not fit. ${problemTexts.join("; ")}`;
};

/** Adds the list of writable files if the chat's programs are read-only. */
const restrictWrites = (context: ToolContext, tool_name: string, chat: ChatToolContext): ToolContext =>
  findToolUse(tool_name, chat) === "read_only"
    ? { ...context, writable_only: chat.mode === "plan" ? [chat.plan_path] : [] }
    : context;

/** True for the form in which src/llm returns invalid JSON. */
const isCutOff = (args: unknown): boolean =>
  typeof args === "object" && args !== null && Object.keys(args).join() === "input" && "input" in args
    ? typeof args.input === "string"
    : false;

const CUT_OFF_MESSAGE =
  "The arguments do not fit. They are not complete JSON: probably they were cut off at the limit of the answer. Nothing was done. Call again with less in one call.";

const formatError = ({ message, detail, validations }: AppError): string =>
  [message, ...validations.map((one) => `${one.field} ${one.detail}.`), detail].filter((part) => part !== "").join(" ");

const toFailedAnswer = (error: string, more: ToolResult = {}): ToolAnswer => ({
  result: truncateResult({ ...more, error }, DEFAULT_RESULT_BYTES),
  is_error: true,
});
