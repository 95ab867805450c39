// The demo model, which needs no key, so that a new installation answers immediately. It introduces itself, and simple directives in the
// message make it take every path of a real model, for testing. It understands nothing else.
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";
import { CHAT_ERROR_KINDS, type ChatErrorKind } from "#schema/chats/chat-error.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import { type LanguageModels, ModelError, type ModelEvent, type ModelInfo, type ModelRequest } from "./model.ts";

export const DEMO: ModelInfo = {
  id: "00000000-0000-4000-8000-0000000000d0",
  provider: "demo",
  display_name: "Demo model",
};

const WORD_DELAY_MS = 12;
const SLOW_WORD_DELAY_MS = 250;
export const DEMO_CONTEXT_LIMIT = 32_000;
const STATUS: { readonly [K in ChatErrorKind]?: number } = {
  rate_limit: 429,
  overloaded: 529,
  auth: 401,
  timeout: 504,
};

export class DemoModels implements LanguageModels {
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  resolve(id: string | null): ModelInfo | undefined {
    return id === null || id === DEMO.id ? DEMO : undefined;
  }

  async *stream(request: ModelRequest): AsyncIterable<ModelEvent> {
    const prompt = getLastMessage(request);
    let output_tokens = 0;
    for await (const event of this.#answer(request, prompt)) {
      if (event.type === "text" || event.type === "reasoning") output_tokens += 1;
      if (event.type === "finish") yield { type: "usage", usage: toUsage(request, output_tokens) };
      yield event;
    }
  }

  async *#answer(request: ModelRequest, prompt: string): AsyncIterable<ModelEvent> {
    const results = request.messages.at(-1)?.role === "tool";
    const directive = results ? undefined : parseDirective(prompt);
    const { word = "", rest = "" } = directive ?? {};
    const task = parseDirective(prompt);
    const call = task?.word === "agent" ? parseAgentCall(task.rest, request) : undefined;
    if (call) {
      yield call;
      return yield { type: "finish", reason: "tool_calls" };
    }
    if (word === "fail") throwNamedError(rest, request.attempt);
    if (word === "think") {
      yield* this.#streamWords("reasoning", rest, WORD_DELAY_MS, request);
      yield* this.#streamWords("text", "That is what I have thought about.", WORD_DELAY_MS, request);
      return yield { type: "finish", reason: "stop" };
    }
    if (word === "hang") {
      yield* this.#streamWords("text", rest, 0, request);
      return await waitForAbort(request.signal);
    }
    if (word === "refuse") return yield { type: "finish", reason: "content_filter" };
    if (word === "break") return yield* this.#streamWords("text", rest || "This answer breaks off", 0, request);
    if (word === "tool") return yield* this.#call(rest, request);
    if (word === "run") return yield* this.#runCommand(rest, request);
    const slow = word === "slow";
    const text = results ? summarizeResults(request) : slow || word === "say" ? rest : formatIntroduction(prompt);
    yield* this.#streamWords("text", text, slow ? SLOW_WORD_DELAY_MS : WORD_DELAY_MS, request);
    yield { type: "finish", reason: "stop" };
  }

  async *#streamWords(type: "text" | "reasoning", text: string, ms: number, { signal }: ModelRequest) {
    for (const delta of text.trimEnd().match(/\s*\S+/g) ?? []) {
      signal.throwIfAborted();
      yield { type, delta } as const;
      if (ms > 0) await pause(this.#clock, ms);
    }
  }

  /** `run: <shell command>` runs in the chat's workspace. */
  async *#runCommand(command: string, request: ModelRequest): AsyncIterable<ModelEvent> {
    const { messages, tools } = request;
    const canRun = command !== "" && tools.some(({ name }) => name === "execute");
    if (!canRun) {
      yield* this.#streamWords("text", command === "" ? NO_COMMAND_TEXT : NO_WORKSPACE_TEXT, WORD_DELAY_MS, request);
      return yield { type: "finish", reason: "stop" };
    }
    const args = { command, model_intent: "Run what was asked for", timeout: "10m" };
    yield { type: "tool_call", id: `demo-${messages.length}-1`, name: "execute", args };
    yield { type: "finish", reason: "tool_calls" };
  }

  /** `tool: name {json}` calls a tool, once for each such line. */
  async *#call(first: string, { messages, tools }: ModelRequest): AsyncIterable<ModelEvent> {
    const calls = [
      first.split("\n")[0] ?? "",
      ...getLastMessage({ messages }).split("\n").slice(1).flatMap(formatToolCall),
    ];
    for (const [index, call] of calls.entries()) {
      const [, name = "", args = ""] = /^(\S+)\s*([\s\S]*)$/.exec(call) ?? [];
      if (!tools.some((tool) => tool.name === name)) {
        yield { type: "text", delta: `There is no tool "${name}" here.` };
        continue;
      }
      const id = `demo-${messages.length}-${index + 1}`;
      const text = args.trim() || "{}";
      yield { type: "tool_call_delta", id, name, delta: text };
      yield { type: "tool_call", id, name, args: parseArguments(text) };
    }
    yield { type: "finish", reason: "tool_calls" };
  }
}

const formatToolCall = (line: string): string[] => {
  const directive = parseDirective(line);
  return directive?.word === "tool" ? [directive.rest] : [];
};

const NO_WORKSPACE_TEXT =
  "I can run commands only in a workspace, and this chat is not bound to one. Choose a workspace for the chat, then say it again.";
const NO_COMMAND_TEXT = 'Say what to run, such as "run: ls -la".';

const DIRECTIVE = /^\s*(fail|think|hang|refuse|break|tool|run|agent|slow|say):[ \t]*([\s\S]*)$/i;

const parseDirective = (text: string): { word: string; rest: string } | undefined => {
  const match = DIRECTIVE.exec(text);
  return match ? { word: (match[1] as string).toLowerCase(), rest: (match[2] as string).trim() } : undefined;
};

/** `fail: kind [times] [retry after, in seconds]`; without times it always fails. */
const throwNamedError = (rest: string, attempt: number): void => {
  const [word = "", times, after] = rest.split(/\s+/);
  const kind = CHAT_ERROR_KINDS.find((one) => one === word) ?? "generic";
  if (times !== undefined && attempt > Number(times)) return;
  throw new ModelError(kind, `The demo model was asked to fail as ${kind}.`, {
    provider: DEMO.provider,
    status_code: STATUS[kind],
    retry_after_ms: Number(after ?? 0) * 1000,
  });
};

const waitForAbort = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });

const getLastMessage = ({ messages }: Pick<ModelRequest, "messages">): string =>
  (messages.findLast(({ role }) => role === "user")?.content ?? [])
    .flatMap(({ type, text }) => (type === "text" && text ? [text] : []))
    .join("\n");

const formatIntroduction = (prompt: string): string =>
  `This is the built-in demo, not a real model. You wrote: "${
    prompt.length > 400 ? `${prompt.slice(0, 400)}…` : prompt
  }". An administrator can add a model provider. Until then, "run: command" runs a shell command in the chat's workspace, "agent: task" gives a task to a sub-agent and reports its answer, and "say: words", "slow: words", "think: words" and "tool: name {json}" show what a chat can do.`;

const summarizeResults = ({ messages }: ModelRequest): string => {
  const newMessages = messages.slice(messages.findLastIndex(({ role }) => role === "assistant") + 1);
  const results = newMessages.flatMap(({ content }) => content).filter(({ type }) => type === "tool-result");
  const commandResult = results.find(({ tool_name }) => tool_name === "execute");
  if (results.length === 1 && commandResult) return summarizeRun(commandResult.result);
  const report = summarizeAgents({ messages });
  if (report !== undefined) return report;
  const words = results.map(
    ({ tool_name, result, is_error }) =>
      `${tool_name} ${is_error ? "failed with" : "answered"} ${JSON.stringify(result)}`,
  );
  return `The results are in: ${words.join("; ")}.`;
};

/** Summarizes the result of a command. */
const summarizeRun = (result: unknown): string => {
  const { output = "", error, exit_code } = (result ?? {}) as { output?: string; error?: string; exit_code?: number };
  const end = error ?? (exit_code === 0 ? "Command succeeded." : `Command failed with exit code ${exit_code}.`);
  return output === "" ? `${end} It printed nothing.` : `\`\`\`\n${output.trimEnd()}\n\`\`\`\n\n${end}`;
};

const parseArguments = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return { input: text };
  }
};

const toUsage = ({ messages }: ModelRequest, output_tokens: number) => {
  const input_tokens = messages
    .flatMap(({ content }) => content)
    .reduce((sum, { text = "" }) => sum + text.split(/\s+/).length, 0);
  const total_tokens = input_tokens + output_tokens;
  return { input_tokens, output_tokens, total_tokens, context_limit: DEMO_CONTEXT_LIMIT };
};

type Call = Extract<ModelEvent, { type: "tool_call" }>;

/**
 * Returns the next call for `agent: <task>`, which starts a sub-chat with this task: the first call starts the agent, the second waits for
 * it. Undefined if there is no further call.
 */
const parseAgentCall = (task: string, { messages, tools }: ModelRequest): Call | undefined => {
  const id = `demo-${messages.length}-1`;
  const started = listResults(messages).find(({ tool_name }) => tool_name === "spawn_agent")?.result;
  const chat_id = (started as { chat_id?: string } | undefined)?.chat_id;
  if (chat_id !== undefined) return { type: "tool_call", id, name: "wait_agent", args: { chat_id } };
  const canStart = task !== "" && messages.at(-1)?.role !== "tool" && tools.some(({ name }) => name === "spawn_agent");
  return canStart ? { type: "tool_call", id, name: "spawn_agent", args: { type: "general", prompt: task } } : undefined;
};

/** Returns the agent's result; undefined if the last step was not an agent call. */
const summarizeAgents = ({ messages }: Pick<ModelRequest, "messages">): string | undefined => {
  const [answer, ...more] = listResults(messages);
  if (answer?.tool_name !== "wait_agent" || answer.is_error || more.length > 0) return undefined;
  const { report = "", last_error, timed_out } = answer.result as Report;
  if (timed_out) return "The agent is still working.";
  return last_error === undefined ? `The agent reports: ${report}` : `The agent failed: ${last_error}`;
};

type Report = { report?: string; last_error?: string; timed_out?: boolean };

/** Returns the results of the last step. */
const listResults = (messages: ModelRequest["messages"]): MessagePart[] =>
  messages
    .slice(messages.findLastIndex(({ role }) => role === "assistant") + 1)
    .flatMap(({ content }) => content.filter(({ type }) => type === "tool-result"));
