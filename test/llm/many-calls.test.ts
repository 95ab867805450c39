// Answers with very many tool calls, which would block the server for all others: each provider's package reads only the first ones.
import { expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import type { ProviderKind } from "#schema/chats/model-provider.ts";
import { loadAdapter } from "#src/llm/adapters.ts";
import { AnswerEvents } from "#src/llm/answer-events.ts";
import { CallDeltas } from "#src/llm/call-deltas.ts";
import { ModelError } from "#src/llm/model.ts";
import type { RequestTools } from "#src/llm/request/tools.ts";

const MAX_CALLS = 512;
const UNCHANGED_TOOLS = {
  getOwnName: (name: string) => name,
  toOwnArgs: (_: string, args: unknown) => args,
} as RequestTools;

const line = (event: unknown): string => `data: ${JSON.stringify(event)}\n\n`;
const toCalledFunction = (index: number, id: string) => ({
  index,
  id,
  type: "function",
  function: { name: "look", arguments: "{" },
});
const toChunk = (...tool_calls: readonly unknown[]): string =>
  line({ id: "a", created: 1, model: "m", choices: [{ index: 0, delta: { tool_calls }, finish_reason: null }] });

type Start = (index: number) => string;
const CHAT: Start = (index) => toChunk(toCalledFunction(index, `c${index}`));
const CHAT_SAME_INDEX: Start = (index) => toChunk(toCalledFunction(0, `c${index}`));
const RESPONSES: Start = (output_index) =>
  line({
    type: "response.output_item.added",
    output_index,
    item: { type: "function_call", id: `f${output_index}`, call_id: `c${output_index}`, name: "look", arguments: "" },
  });
const ANTHROPIC: Start = (index) =>
  line({
    type: "content_block_start",
    index,
    content_block: { type: "tool_use", id: `c${index}`, name: "look", input: {} },
  });
const GOOGLE: Start = () =>
  line({ candidates: [{ content: { parts: [{ functionCall: { name: "look", args: {} } }] } }] });

const CASES: readonly (readonly [name: string, kind: ProviderKind, useResponses: boolean, start: Start])[] = [
  ["a chat-completions server", "openai-compat", false, CHAT],
  ["a chat-completions server that repeats an index", "openai-compat", false, CHAT_SAME_INDEX],
  ["OpenAI chat completions", "openai", false, CHAT],
  ["OpenAI responses", "openai", true, RESPONSES],
  ["Anthropic", "anthropic", false, ANTHROPIC],
  ["Google", "google", false, GOOGLE],
];

/** Returns the error of an answer that starts this many calls and then breaks off. */
const readAnswer = async ([, kind, useResponses, toStart]: (typeof CASES)[number], count: number): Promise<unknown> => {
  const text = Array.from({ length: count }, (_, index) => toStart(index)).join("");
  const { model } = await loadAdapter(kind, {
    base_url: "http://models.example/v1",
    key: "key",
    model: "m",
    useResponses,
    fetch: async () => new Response(text, { headers: { "content-type": "text/event-stream" } }),
    clock: systemClock,
  });
  const events = new AnswerEvents({ provider: kind, context_limit: 0, tools: UNCHANGED_TOOLS });
  try {
    const { stream } = await model({ streamOptions: true }).doStream({ prompt: [] });
    for await (const part of stream) Array.from(events.read(part));
    return undefined;
  } catch (error) {
    const { cause } = error as Error;
    return cause instanceof ModelError ? cause : error;
  }
};

const isTooMany = (error: unknown): boolean => error instanceof ModelError && error.reason === "endless";

test.each(CASES)("[CH-53] %s: an answer with more than 512 calls is ended", async (name, kind, useResponses, start) => {
  const read = (count: number) => readAnswer([name, kind, useResponses, start], count);
  expect(isTooMany(await read(MAX_CALLS + 1))).toBe(true);
  expect(isTooMany(await read(MAX_CALLS))).toBe(false);
});

test("[CH-53] calls are numbered without gaps, whatever the server says, and deltas under one index reach its first call", () => {
  const deltas = new CallDeltas();
  const calls = [
    toCalledFunction(2 ** 32, "a"),
    toCalledFunction(-1.5, "b"),
    toCalledFunction(-1.5, "c"),
    { index: 2 ** 32, function: { arguments: "}" } },
    { id: "b", function: { arguments: "}" } },
    { index: 7, function: { arguments: "}" } },
    { id: "new", index: -1.5, function: { arguments: "}" } },
  ];
  deltas.repair(calls, "answer");
  expect(calls.map(({ index }) => index)).toEqual([0, 1, 2, 0, 1, 1, 1]);
  expect(calls.map((call) => ("id" in call ? call.id : undefined))).toEqual([
    "a",
    "b",
    "c",
    undefined,
    "b",
    undefined,
    undefined,
  ]);
});
