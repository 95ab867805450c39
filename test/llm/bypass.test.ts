// Text that bypasses the provider's package: the result compared with the package's alone.

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

const chunk = (delta: unknown, more: object = {}): string =>
  `data: ${JSON.stringify({ id: "a", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason: null }], ...more })}\n\n`;
const call = (index: number, piece: object): string => chunk({ tool_calls: [{ index, ...piece }] });

const WORDS = fc.constantFrom("tea", " and", " größe 😀", "\u2028", "<b>", "");
const CHUNK = fc.oneof(
  { weight: 6, arbitrary: WORDS.map((content) => chunk({ content })) },
  { weight: 3, arbitrary: WORDS.map((reasoning_content) => chunk({ content: null, reasoning_content })) },
  WORDS.map((reasoning) => chunk({ role: "assistant", content: "said", reasoning, tool_calls: null })),
  fc.constantFrom(
    chunk({ role: "assistant", content: "" }),
    chunk({}),
    ": a comment\n\n",
    "event: message\nid: 7\n",
    "\n",
    chunk({ content: [{ type: "text", text: "in a list" }] }),
    chunk({ content: "counted" }, { usage: { prompt_tokens: 3, completion_tokens: 1 } }),
    'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}\n\n',
    'data: {"choices":[],"prompt_filter_results":[]}\n\n',
    chunk({ content: 42 }),
    chunk({ refusal: "I will not" }),
    chunk({ role: "user", content: "odd" }),
    "data: {oops\n\n",
    'data: {"error":{"message":"no more"}}\n\n',
    call(0, { id: "c1", type: "function", function: { name: "look", arguments: '{"a":' } }),
    call(0, { function: { arguments: "1}" } }),
    call(1, { id: "c2", type: "function", function: { name: "see", arguments: "{}" } }),
    'data: {"choices":[{"index":0,"delta":{"content":"last"},"finish_reason":"stop"}]}\n\n',
    "data: [DONE]\n\n",
  ),
);

const AS_THEY_ARE = {
  getOwnName: (name: string) => name,
  toOwnArgs: (_: string, args: unknown) => args,
} as RequestTools;

/** Returns the result of an answer with these pieces: what followers see, with consecutive texts joined, the message and the error. */
const readAs = async (pieces: readonly Uint8Array[], bypass: Bypass | undefined) => {
  const left = [...pieces];
  const body = new ReadableStream<Uint8Array>({
    pull(out) {
      const piece = left.shift();
      if (piece) out.enqueue(piece);
      else out.close();
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
  const events = new AnswerEvents({ provider: "openai-compat", context_limit: 0, tools: AS_THEY_ARE });
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
    for (let isOver = false; !isOver; ) {
      const next = await answer.next();
      isOver = "type" in next && next.type === "finish";
      if ("type" in next && next.type === "error") shown.push(`${next.error}`.slice(0, 24));
      else for (const event of "words" in next ? next.words : events.read(next)) collector.add(event, 0).forEach(show);
    }
  } catch (error) {
    shown.push(String(error));
  }
  return { shown, message: collector.content(0), usage: collector.usage, finish: collector.finish };
};

/** The package gives a random ID to a call without one. */
const hideMadeIds = (answer: object): unknown =>
  JSON.parse(JSON.stringify(answer).replace(/"tool_call_id":"[A-Za-z0-9]{16}"/g, '"tool_call_id":"made"'));

test("[MO-66] text that bypasses the package equals what the package would have read, in the same place, however the stream is split", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(CHUNK, { maxLength: 14 }), fc.integer({ min: 1, max: 400 }), async (chunks, length) => {
      const bytes = new TextEncoder().encode(chunks.join(""));
      const pieces = Array.from({ length: Math.ceil(bytes.length / length) }, (_, at) =>
        bytes.slice(at * length, (at + 1) * length),
      );
      expect(hideMadeIds(await readAs(pieces, new Bypass()))).toEqual(hideMadeIds(await readAs(pieces, undefined)));
    }),
    { numRuns: 150 },
  );
});

test("[MO-66] text that arrives together is one chunk, and more is read only when the reader has caught up", async () => {
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
