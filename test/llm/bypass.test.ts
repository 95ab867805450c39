// Text that bypasses the provider's package. The result must equal the result of the package alone.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { Collector } from "#actors/chat/turn/collector.ts";
import { systemClock } from "#base/clock.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import { loadAdapter } from "#src/llm/adapters.ts";
import { AnswerEvents } from "#src/llm/answer-events.ts";
import { AnswerReader } from "#src/llm/answer-reader.ts";
import { Bypass } from "#src/llm/bypass.ts";
import type { RequestTools } from "#src/llm/request/tools.ts";

const makeChunk = (delta: unknown, fields: object = {}): string =>
  `data: ${JSON.stringify({ id: "a", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason: null }], ...fields })}\n\n`;
const makeCallChunk = (index: number, piece: object): string => makeChunk({ tool_calls: [{ index, ...piece }] });

const TEXTS = fc.constantFrom("tea", " and", " größe 😀", "\u2028", "<b>", "");
const CHUNK = fc.oneof(
  { weight: 6, arbitrary: TEXTS.map((content) => makeChunk({ content })) },
  { weight: 3, arbitrary: TEXTS.map((reasoning_content) => makeChunk({ content: null, reasoning_content })) },
  TEXTS.map((reasoning) => makeChunk({ role: "assistant", content: "said", reasoning, tool_calls: null })),
  fc.constantFrom(
    makeChunk({ role: "assistant", content: "" }),
    makeChunk({}),
    ": a comment\n\n",
    "event: message\nid: 7\n",
    "\n",
    makeChunk({ content: [{ type: "text", text: "in a list" }] }),
    makeChunk({ content: "counted" }, { usage: { prompt_tokens: 3, completion_tokens: 1 } }),
    'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}\n\n',
    'data: {"choices":[],"prompt_filter_results":[]}\n\n',
    makeChunk({ content: 42 }),
    makeChunk({ refusal: "I will not" }),
    makeChunk({ role: "user", content: "odd" }),
    "data: {oops\n\n",
    'data: {"error":{"message":"no more"}}\n\n',
    makeCallChunk(0, { id: "c1", type: "function", function: { name: "look", arguments: '{"a":' } }),
    makeCallChunk(0, { function: { arguments: "1}" } }),
    makeCallChunk(1, { id: "c2", type: "function", function: { name: "see", arguments: "{}" } }),
    'data: {"choices":[{"index":0,"delta":{"content":"last"},"finish_reason":"stop"}]}\n\n',
    "data: [DONE]\n\n",
  ),
);

const IDENTITY_TOOLS = {
  getOwnName: (name: string) => name,
  toOwnArgs: (_: string, args: unknown) => args,
} as RequestTools;

/** Returns what followers see of an answer with these pieces (consecutive texts are joined, and errors are included), and the final message. */
const readAnswer = async (pieces: readonly Uint8Array[], bypass: Bypass | undefined) => {
  const remaining = [...pieces];
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const piece = remaining.shift();
      if (piece) controller.enqueue(piece);
      else controller.close();
    },
  });
  const { model } = await loadAdapter("openai-compat", {
    base_url: "http://models.example/v1",
    key: "",
    model: "m",
    useResponses: false,
    fetch: async () => new Response(body, { headers: { "content-type": "text/event-stream" } }),
    clock: systemClock,
  });
  const { stream } = await model({ streamOptions: true, bypass }).doStream({ prompt: [] });
  const answer = new AnswerReader(stream, bypass);
  const events = new AnswerEvents({ provider: "openai-compat", context_limit: 0, tools: IDENTITY_TOOLS });
  const collector = new Collector();
  const shown: (MessagePart | string)[] = [];
  const show = (part: MessagePart): void => {
    const last = shown.at(-1);
    // The end of a thought is part of the message.
    if (part.completed_at) return;
    if (typeof last === "object" && last.type === part.type && last.text && part.text) last.text += part.text;
    else shown.push({ ...part });
  };
  try {
    for (let hasFinished = false; !hasFinished; ) {
      const next = await answer.next();
      hasFinished = "type" in next && next.type === "finish";
      if ("type" in next && next.type === "error") shown.push(`${next.error}`.slice(0, 24));
      else for (const event of "words" in next ? next.words : events.read(next)) collector.add(event, 0).forEach(show);
    }
  } catch (error) {
    shown.push(String(error));
  }
  return { shown, message: collector.content(0), usage: collector.usage, finish: collector.finish };
};

/** The package gives a random ID to a call without one. */
const hideGeneratedIds = (answer: object): unknown =>
  JSON.parse(JSON.stringify(answer).replace(/"tool_call_id":"[A-Za-z0-9]{16}"/g, '"tool_call_id":"made"'));

test("[MO-66] text that bypasses the package equals the text that the package reads, in the same position, however the stream is split", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(CHUNK, { maxLength: 14 }), fc.integer({ min: 1, max: 400 }), async (chunks, length) => {
      const bytes = new TextEncoder().encode(chunks.join(""));
      const pieces = Array.from({ length: Math.ceil(bytes.length / length) }, (_, i) =>
        bytes.slice(i * length, (i + 1) * length),
      );
      expect(hideGeneratedIds(await readAnswer(pieces, new Bypass()))).toEqual(
        hideGeneratedIds(await readAnswer(pieces, undefined)),
      );
    }),
    { numRuns: 150 },
  );
});

test("[MO-66] text that arrives together is one event, and reading pauses until the reader has caught up", async () => {
  const bypass = new Bypass();
  for (const content of ["tea", " it", " is"]) {
    expect(bypass.readChunk(JSON.stringify({ choices: [{ delta: { content } }] }))).toBe("words");
  }
  expect(bypass.waitForRoom()).toBeUndefined();
  expect(bypass.drain()).toEqual([{ type: "text", delta: "tea it is" }]);
  bypass.readChunk(JSON.stringify({ choices: [{ delta: { content: "x".repeat(300_000) } }] }));
  let hasRoom = false;
  const room = bypass.waitForRoom()?.then(() => (hasRoom = true));
  expect(hasRoom).toBe(false);
  bypass.drain();
  await room;
  expect(hasRoom).toBe(true);
});
