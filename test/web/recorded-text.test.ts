// Recorded prompts and answers on the AI usage page.
import { describe, expect, test } from "bun:test";
import { formatAnswer, formatPrompt } from "#src/web/app/pages/insights/recorded-text.ts";

const formatStream = (...events: object[]): string =>
  events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
const PLAN = { path: "a.ts" };

describe("[GW-15] answers of each dialect are shown as text", () => {
  const answers: Readonly<Record<string, string>> = {
    "a stream of chat completions": formatStream(
      { choices: [{ delta: { role: "assistant", content: "I read " } }] },
      { choices: [{ delta: { content: "it." } }] },
      { choices: [{ delta: { tool_calls: [{ function: { name: "read", arguments: '{"path":' } }] } }] },
      { choices: [{ delta: { tool_calls: [{ function: { arguments: '"a.ts"}' } }] } }] },
    ),
    "chat completions": JSON.stringify({
      choices: [
        {
          message: {
            content: "I read it.",
            tool_calls: [{ function: { name: "read", arguments: '{"path":"a.ts"}' } }],
          },
        },
      ],
    }),
    "a stream of messages": formatStream(
      { type: "message_start", message: { content: [] } },
      { type: "content_block_start", content_block: { type: "text", text: "" } },
      { type: "content_block_delta", delta: { type: "text_delta", text: "I read it." } },
      { type: "content_block_start", content_block: { type: "tool_use", name: "read", input: {} } },
      { type: "content_block_delta", delta: { type: "input_json_delta", partial_json: '{"path":"a.ts"}' } },
    ),
    "a message": JSON.stringify({
      content: [
        { type: "text", text: "I read it." },
        { type: "tool_use", name: "read", input: PLAN },
      ],
    }),
    "a stream of Gemini": formatStream({
      candidates: [{ content: { parts: [{ text: "I read it." }, { functionCall: { name: "read", args: PLAN } }] } }],
    }),
  };
  for (const [format, answer] of Object.entries(answers)) {
    test(format, () => expect(formatAnswer(answer)).toBe('I read it.\nread {"path":"a.ts"}'));
  }
  test("a stream of the Responses API, whose final events repeat the deltas", () => {
    const output = [{ type: "message", content: [{ type: "output_text", text: "I read it." }] }];
    const answer = formatStream(
      { type: "response.output_text.delta", delta: "I read " },
      { type: "response.output_text.delta", delta: "it." },
      { type: "response.output_text.done", text: "I read it." },
      { type: "response.completed", response: { output } },
    );
    expect(formatAnswer(answer)).toBe("I read it.");
    expect(formatAnswer(JSON.stringify({ output }))).toBe("I read it.");
  });
  test("other texts are unchanged", () => {
    for (const text of ["", "no JSON", '{"error":{"code":"overloaded"}}', "data: [DONE]\n\n", "null", "[1]"]) {
      expect(formatAnswer(text)).toBe(text);
    }
    expect(formatPrompt('{"a":1}')).toBe('{\n  "a": 1\n}');
    expect(formatPrompt('{"a":')).toBe('{"a":');
  });
});
