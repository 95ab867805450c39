// Thinking inside the text of an answer that arrives in different chunks.
import { describe, expect, test } from "bun:test";
import { Collector } from "#actors/chat/turn/collector.ts";
import type { ModelEvent } from "#src/llm/model.ts";
import { ThinkTags } from "#src/llm/think-tags.ts";

const FINISH: ModelEvent = { type: "finish", reason: "stop" };

const listParts = (events: readonly ModelEvent[]): string[] => {
  const tags = new ThinkTags();
  const collector = new Collector();
  for (const event of events) for (const parsedEvent of tags.add(event)) collector.add(parsedEvent, 0);
  return collector.content(0).map(({ type, text, tool_name }) => `${type}: ${text ?? tool_name}`);
};

const CASES: [answer: string, ...parts: string[]][] = [
  ["<think>\nhm\n</think>\n\nYes.", "reasoning: \nhm\n", "text: Yes."],
  ["\n <think>hm</think>Yes.", "reasoning: hm", "text: Yes."],
  ["<thinking>a < b</thinking>No", "reasoning: a < b", "text: No"],
  ["[THINK]hm[/THINK]Oui", "reasoning: hm", "text: Oui"],
  ["<think></think>\n\nYes.", "text: Yes."],
  ["<think>never closed", "reasoning: never closed"],
  ["<think>one</think><think>two</think>three", "reasoning: one", "reasoning: two", "text: three"],
  ["Let me see.\nYes: 4\n</think>\n\nFour.", "reasoning: Let me see.\nYes: 4\n", "text: Four."],
  ["The tag <think> opens and </think> closes.", "text: The tag <think> opens and </think> closes."],
  ["Write:\n```\n<think>\n</think>\n```\nso.", "text: Write:\n```\n<think>\n</think>\n```\nso."],
  ["<thin air", "text: <thin air"],
  ["a </thi", "text: a </thi"],
  ["plain", "text: plain"],
];

describe("thinking tags", () => {
  test.each(CASES)(
    "[MO-41] %j is parsed the same in one piece, letter by letter, and split at every position",
    (answer, ...parts) => {
      const pieces = [
        [answer],
        [...answer],
        ...[...answer].map((_, i) => [answer.slice(0, i), answer.slice(i)].filter((piece) => piece !== "")),
      ];
      for (const chunks of pieces) {
        const events = chunks.map((delta): ModelEvent => ({ type: "text", delta }));
        expect(listParts([...events, FINISH])).toEqual(parts);
      }
    },
  );

  test("[MO-41] a call releases text that might have become a tag, and thinking that the server marks as reasoning needs no tags", () => {
    const call: ModelEvent = { type: "tool_call", id: "1", name: "look", args: {} };
    expect(listParts([{ type: "text", delta: "I look <" }, call, FINISH])).toEqual([
      "text: I look <",
      "tool-call: look",
    ]);
    const marked: ModelEvent = { type: "reasoning", delta: "hm" };
    const text: ModelEvent = { type: "text", delta: "so:\n</think>\nis a tag" };
    expect(listParts([marked, text, FINISH])).toEqual(["reasoning: hm", "text: so:\n</think>\nis a tag"]);
  });
});
