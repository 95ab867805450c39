// The gateway reads the usage from forwarded responses in every format, however the bytes are split, without changing them.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { UsageFormat } from "#src/llm/gateway/endpoint.ts";
import { KeyMask } from "#src/llm/gateway/key-mask.ts";
import { UsageTap } from "#src/llm/gateway/usage-tap.ts";
import type { ModelUsage } from "#src/llm/model.ts";

const encodeEvents = (...data: unknown[]): string =>
  data.map((event) => `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`).join("");

const EVENTS = "text/event-stream; charset=utf-8";
const JSON_TYPE = "application/json";

/** A format, its content type, a response, and its usage. */
const ANSWERS: readonly (readonly [string, UsageFormat, string, string, ModelUsage])[] = [
  [
    "a stream of Anthropic",
    "anthropic",
    EVENTS,
    `event: message_start\r\n${encodeEvents({
      type: "message_start",
      message: {
        model: "m-1",
        usage: {
          input_tokens: 10,
          cache_read_input_tokens: 4,
          cache_creation_input_tokens: 3,
          cache_creation: { ephemeral_5m_input_tokens: 1, ephemeral_1h_input_tokens: 2 },
          output_tokens: 1,
        },
      },
    })}${encodeEvents({ type: "content_block_delta", delta: { text: "é" } }, { type: "message_delta", usage: { output_tokens: 25 } }, { type: "message_stop" })}`,
    {
      input_tokens: 10,
      output_tokens: 25,
      cache_read_tokens: 4,
      cache_creation_tokens: 3,
      cache_creation_1h_tokens: 2,
    },
  ],
  [
    "a complete answer of Anthropic",
    "anthropic",
    JSON_TYPE,
    JSON.stringify({ model: "m-1", usage: { input_tokens: 7, output_tokens: 9, cache_read_input_tokens: null } }),
    { input_tokens: 7, output_tokens: 9 },
  ],
  [
    "a stream of chat completions",
    "openai_chat",
    EVENTS,
    encodeEvents(
      { model: "m-1", choices: [{ delta: { content: "a" } }], usage: null },
      {
        model: "m-1",
        choices: [],
        usage: { prompt_tokens: 12, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 8 } },
      },
      "[DONE]",
    ),
    { input_tokens: 4, output_tokens: 3, cache_read_tokens: 8 },
  ],
  [
    "a stream of responses",
    "openai_responses",
    EVENTS,
    encodeEvents(
      { type: "response.created", response: { model: "m-1", usage: null } },
      {
        type: "response.completed",
        response: {
          model: "m-1",
          usage: { input_tokens: 20, output_tokens: 5, input_tokens_details: { cached_tokens: 6 } },
        },
      },
    ),
    { input_tokens: 14, output_tokens: 5, cache_read_tokens: 6 },
  ],
  [
    "embeddings",
    "openai_embeddings",
    JSON_TYPE,
    JSON.stringify({ model: "m-1", data: [], usage: { prompt_tokens: 6 } }),
    { input_tokens: 6 },
  ],
  [
    "a stream of Gemini",
    "google",
    EVENTS,
    encodeEvents(
      { modelVersion: "m-1", usageMetadata: { promptTokenCount: 9 } },
      {
        modelVersion: "m-1",
        usageMetadata: {
          promptTokenCount: 9,
          candidatesTokenCount: 4,
          thoughtsTokenCount: 2,
          cachedContentTokenCount: 5,
        },
      },
    ),
    { input_tokens: 4, output_tokens: 6, cache_read_tokens: 5 },
  ],
  [
    "Gemini's stream as one array",
    "google",
    JSON_TYPE,
    JSON.stringify([
      { usageMetadata: { promptTokenCount: 9 } },
      { modelVersion: "m-1", usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 4 } },
    ]),
    { input_tokens: 9, output_tokens: 4 },
  ],
];

/** Feeds the text to the tap in pieces that end at these positions. Returns the tap's output. */
const feedInPieces = (tap: UsageTap, text: string, cuts: readonly number[]): string => {
  const bytes = new TextEncoder().encode(text);
  const positions = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  const pieces = [...positions, bytes.length].map((end, i) => bytes.slice(i === 0 ? 0 : positions[i - 1], end));
  const output = pieces.map((piece) => tap.read(piece));
  return new TextDecoder().decode(Buffer.concat([...output, tap.end()]));
};

describe("the usage of an answer", () => {
  test.each(ANSWERS)(
    "[GW-5] is read from %s, however its bytes are split, and the bytes pass unchanged",
    (_, format, type, text, usage) => {
      fc.assert(
        fc.property(fc.array(fc.nat(4_000), { maxLength: 12 }), (cuts) => {
          const tap = new UsageTap({ format, type, hidesUsage: false });
          expect(feedInPieces(tap, text, cuts)).toBe(text);
          expect(tap.tapped).toMatchObject({
            usage,
            failed: false,
            model: "m-1",
          });
        }),
        { numRuns: 60 },
      );
    },
  );

  test("[GW-2] stream usage that only the gateway requested is removed, and nothing else", () => {
    const before = encodeEvents({ choices: [{ delta: { content: "a" } }] }, { choices: [{ finish_reason: "stop" }] });
    const hidden = encodeEvents({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 2 } });
    fc.assert(
      fc.property(fc.array(fc.nat(400), { maxLength: 8 }), fc.constantFrom("\n", "\r\n"), (cuts, newline) => {
        const tap = new UsageTap({ format: "openai_chat", type: EVENTS, hidesUsage: true });
        const stream = (before + hidden + encodeEvents("[DONE]")).replaceAll("\n", newline);
        expect(feedInPieces(tap, stream, cuts)).toBe((before + encodeEvents("[DONE]")).replaceAll("\n", newline));
        expect(tap.tapped.usage).toEqual({ input_tokens: 1, output_tokens: 2 });
      }),
      { numRuns: 60 },
    );
  });

  test("[GW-5] an error during a stream is detected, and a truncated answer still reports its usage", () => {
    const broken = new UsageTap({ format: "anthropic", type: EVENTS, hidesUsage: false });
    feedInPieces(
      broken,
      encodeEvents(
        { type: "message_start", message: { usage: { input_tokens: 3, output_tokens: 1 } } },
        { type: "error", error: { type: "overloaded_error" } },
      ),
      [5],
    );
    expect(broken.tapped).toMatchObject({ usage: { input_tokens: 3, output_tokens: 1 }, failed: true });
    const truncated = new UsageTap({ format: "google", type: JSON_TYPE, hidesUsage: false });
    feedInPieces(
      truncated,
      '[{"usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 4}}, {"candidates": [',
      [],
    );
    expect(truncated.tapped.usage).toEqual({ input_tokens: 9, output_tokens: 4 });
  });

  test("[GW-9] the buffered part of an answer is bounded; usage at its end is still read", () => {
    const tap = new UsageTap({ format: "openai_chat", type: JSON_TYPE, hidesUsage: false });
    const piece = new Uint8Array(4 * 1024 * 1024).fill(0x61);
    for (let i = 0; i < 12; i++) tap.read(piece);
    tap.read(new TextEncoder().encode('", "usage": {"prompt_tokens": 5, "completion_tokens": 6}}'));
    tap.end();
    expect(tap.tapped).toMatchObject({ usage: { input_tokens: 5, output_tokens: 6 } });
  });

  test.each([1e300, 1e12, Number.POSITIVE_INFINITY])(
    "[GW-5] a provider's report of %p tokens is not used",
    (reported) => {
      const tokens = reported === Number.POSITIVE_INFINITY ? "1e999" : String(reported);
      const response = new UsageTap({ format: "openai_chat", type: JSON_TYPE, hidesUsage: false });
      feedInPieces(response, `{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":${tokens}}}`, []);
      expect(response.tapped.usage).toBeUndefined();
      const stream = new UsageTap({ format: "anthropic", type: EVENTS, hidesUsage: false });
      const start = { type: "message_start", message: { usage: { input_tokens: 3, output_tokens: 1 } } };
      const textDelta = { type: "content_block_delta", delta: { type: "text_delta", text: "x".repeat(40) } };
      const end = `data: {"type":"message_delta","usage":{"output_tokens":${tokens}}}\n\n`;
      feedInPieces(stream, encodeEvents(start, textDelta) + end, []);
      expect(stream.tapped).toMatchObject({ usage: undefined, text_bytes: 40 });
    },
  );

  test.each<[string, UsageFormat, object]>([
    ["zero tokens for an answer with text", "openai_chat", { prompt_tokens: 0, completion_tokens: 0 }],
    [
      "more cached tokens than prompt tokens",
      "openai_chat",
      { prompt_tokens: 10, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 1e9 } },
    ],
  ])("[GW-5] a provider's report of %s is not used", (_, format, usage) => {
    const tap = new UsageTap({ format, type: EVENTS, hidesUsage: false });
    feedInPieces(tap, encodeEvents({ choices: [{ delta: { content: "x".repeat(400) } }] }, { choices: [], usage }), []);
    expect(tap.tapped).toMatchObject({ usage: undefined, text_bytes: 400 });
  });

  const PICTURE = "A".repeat(90_000);
  test.each<[string, UsageFormat, object, number]>([
    [
      "encrypted reasoning",
      "openai_responses",
      { type: "response.output_item.done", item: { type: "reasoning", id: "r", encrypted_content: "e".repeat(900) } },
      900,
    ],
    ["a signature", "anthropic", { type: "content_block_delta", delta: { signature: "s".repeat(900) } }, 900],
    [
      "a picture of Gemini",
      "google",
      { candidates: [{ content: { parts: [{ inlineData: { mimeType: "image/png", data: PICTURE } }] } }] },
      6_400,
    ],
    [
      "a part of a picture",
      "openai_responses",
      { type: "response.image_generation_call.partial_image", partial_image_b64: PICTURE },
      6_400,
    ],
    [
      "a picture of responses",
      "openai_responses",
      { type: "response.output_item.done", item: { type: "image_generation_call", result: PICTURE } },
      6_400,
    ],
  ])("[GW-5] %s counts if the client disconnects before the usage report", (_, format, event, bytes) => {
    const tap = new UsageTap({ format, type: EVENTS, hidesUsage: false });
    feedInPieces(tap, encodeEvents(event), [40]);
    expect(tap.tapped).toMatchObject({ usage: undefined, text_bytes: bytes });
  });

  const TEXT = "é".repeat(2_000);
  test.each<[string, UsageFormat, unknown]>([
    ["Anthropic", "anthropic", { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: TEXT } }],
    ["Anthropic's thinking", "anthropic", { type: "content_block_delta", delta: { thinking: TEXT } }],
    ["chat completions", "openai_chat", { id: "c", choices: [{ index: 0, delta: { role: "a", content: TEXT } }] }],
    [
      "chat completions' calls",
      "openai_chat",
      { choices: [{ delta: { tool_calls: [{ id: "1", function: { arguments: TEXT } }] } }] },
    ],
    ["responses", "openai_responses", { type: "response.output_text.delta", item_id: "i", delta: TEXT }],
    ["Gemini", "google", { candidates: [{ content: { role: "model", parts: [{ text: TEXT }] } }] }],
  ])(
    "[GW-5] counts all text of a stream of %s without a usage report, even if the stream is cut off",
    (_, format, event) => {
      const tap = new UsageTap({ format, type: EVENTS, hidesUsage: format === "openai_chat" });
      const done = { type: "response.output_text.done", text: TEXT };
      feedInPieces(
        tap,
        encodeEvents(event, event) + (format === "openai_responses" ? encodeEvents(done) : ""),
        [7, 900],
      );
      expect(tap.tapped).toMatchObject({ usage: undefined, text_bytes: 8_000 });
      const truncated = new UsageTap({ format, type: EVENTS, hidesUsage: false });
      feedInPieces(truncated, encodeEvents(event).slice(0, 1_500), []);
      expect(truncated.tapped.text_bytes).toBeGreaterThan(1_400);
    },
  );

  test("[GW-5] text after the last usage report counts", () => {
    const tap = new UsageTap({ format: "google", type: EVENTS, hidesUsage: false });
    const reported = {
      candidates: [{ content: { parts: [{ text: TEXT }] } }],
      usageMetadata: { candidatesTokenCount: 9 },
    };
    feedInPieces(tap, encodeEvents(reported, { candidates: [{ content: { parts: [{ text: "abc" }] } }] }), []);
    expect(tap.tapped).toMatchObject({ usage: { output_tokens: 9 }, text_bytes: 3 });
  });

  test("[GW-9] an unterminated line is forwarded instead of held, counts as text, and reading continues after it", () => {
    const tap = new UsageTap({ format: "openai_chat", type: EVENTS, hidesUsage: true });
    const piece = new Uint8Array(256 * 1024).fill(0x7a);
    let size = 0;
    for (let i = 0; i < 16; i++) size += tap.read(piece).length;
    expect(size).toBeGreaterThanOrEqual(16 * piece.length - 1024 * 1024);
    const hidden = encodeEvents({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 2 } });
    const end = tap.read(new TextEncoder().encode(`\n\n${hidden}${encodeEvents("[DONE]")}`));
    expect(new TextDecoder().decode(end).replaceAll("z", "")).toBe(`\n\n${encodeEvents("[DONE]")}`);
    expect(size + end.length).toBe(16 * piece.length + 2 + encodeEvents("[DONE]").length);
    expect(tap.tapped).toMatchObject({ usage: { output_tokens: 2 } });
  });

  test("[GW-3] the provider's key is masked however its bytes are split, and all other bytes pass", () => {
    const key = "sk-sk/0123456789";
    const escaped = [
      "\\u0073k-sk/0123456789",
      "sk\\u002dsk\\/012345678\\\\u0039",
      "sk-\\u0073\\u006B\\u002f0123456789",
      "SK-Sk/0123456789",
      "sk%2Dsk%2f0123456789",
      "%53k-\\u0053k/012345678%39",
    ];
    const prefixes = ["%", "sk%2", "S", "sk-", "s", "sk-sk/012345678", "\\u0073", "\\", "\\u007", "sk-sk\\"];
    const patterns = Array.from(key, (char) => {
      const code = char.charCodeAt(0).toString(16);
      const otherCase = /[a-z]/.test(char) ? char.toUpperCase() : char;
      const codes = `(?:${code}|${otherCase.charCodeAt(0).toString(16)})`;
      return `(?:${char}|${otherCase}|\\\\{1,8}u00(?i:${codes})|%(?i:${codes})${char === "/" ? "|\\\\{1,8}/" : ""})`;
    });
    const hide = (text: string): string =>
      text.replaceAll(new RegExp(patterns.join(""), "g"), (found) => "*".repeat(found.length));
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(key, ...escaped, ...prefixes, "x", "\n"), { maxLength: 8 }),
        fc.array(fc.nat(100), { maxLength: 8 }),
        (words, cuts) => {
          const mask = new KeyMask(key);
          const text = words.join("");
          const positions = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b);
          const pieces = [...positions, text.length].map((end, i) => text.slice(i === 0 ? 0 : positions[i - 1], end));
          const output = pieces.map((piece) => mask.read(new TextEncoder().encode(piece)));
          expect(new TextDecoder().decode(Buffer.concat([...output, mask.end()]))).toBe(hide(text));
        },
      ),
    );
  });
});
