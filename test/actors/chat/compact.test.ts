// When the server compacts a history, and what it keeps, without a model.
import { expect, test } from "bun:test";
import {
  computeThreshold,
  excerptUserMessages,
  formatRecord,
  type HistoryRow,
  isDue,
  toCompactionRows,
} from "#actors/chat/prompt/compact.ts";

const makeRow = (role: HistoryRow["role"], text: string, overrides: Partial<HistoryRow> = {}): HistoryRow => ({
  role,
  content: [{ type: "text", text }],
  usage: null,
  replayed: null,
  ...overrides,
});
const makeAnswer = (input_tokens: number): HistoryRow => makeRow("assistant", "ok", { usage: { input_tokens } });

test("[CM-1] the owner's threshold decides when a history is compacted, then the model's, then the context size", () => {
  expect([
    computeThreshold(20, 60, 1_000),
    computeThreshold(undefined, 60, 1_000),
    computeThreshold(undefined, null, 499_999),
  ]).toEqual([20, 60, 70]);
  expect(computeThreshold(undefined, null, 500_000)).toBe(30);
  const history = [makeRow("user", "hi"), makeAnswer(700), makeRow("user", "more")];
  expect([isDue(history, 1_000, 70), isDue(history, 1_001, 70)]).toEqual([true, false]);
  expect([isDue(history, 700, 100), isDue(history, 0, 70), isDue([makeRow("user", "hi")], 1_000, 0)]).toEqual([
    false,
    false,
    false,
  ]);
});

test("[CM-6] a history that has not grown since its compaction is not compacted again", () => {
  const summaryRow = makeRow("user", "the past", { replayed: 0 });
  expect(isDue([summaryRow, makeAnswer(800)], 1_000, 70)).toBe(false);
  expect(isDue([summaryRow, makeAnswer(800), makeAnswer(899)], 1_000, 70)).toBe(false);
  expect(isDue([summaryRow, makeAnswer(800), makeAnswer(900)], 1_000, 70)).toBe(true);
});

test("[CM-3] users' messages are kept word for word; if they are too long, sentences with instructions are kept first", () => {
  const short = ["Build it.", " Never push to main! ", ""];
  expect(excerptUserMessages(short, 1_000)).toEqual(["Build it.", "Never push to main!"]);
  const prose = "The sun went down over the hills. ".repeat(40);
  const longMessages = [
    `First of all: ${prose}`,
    ...Array.from({ length: 20 }, (_, index) => `Chatter ${index}. ${prose}`),
    `${prose}You must not delete the table users. ${prose}`,
    "And now the tests.",
  ];
  const excerpts = excerptUserMessages(longMessages, 3_000);
  expect(excerpts.join("").length).toBeLessThanOrEqual(3_000);
  expect(excerpts[0]).toStartWith("First of all:");
  expect(excerpts.join("\n")).toContain("You must not delete the table users.");
  expect(excerpts.at(-1)).toBe("And now the tests.");
  const truncated = excerptUserMessages([`Always ${"x".repeat(9_000)}`, "b"], 1_000).join("");
  expect(truncated.length).toBeLessThan(1_100);
});

test("[CM-4] unanswered messages are neither summarized nor lost, and a summary fills at most half of the context", () => {
  const longRow = makeRow("tool", "", {
    content: [{ type: "tool-result", tool_name: "execute", result: { output: "x".repeat(50_000) } }],
  });
  const history = [
    makeRow("system", "rules"),
    makeRow("user", "one"),
    makeAnswer(700),
    longRow,
    makeRow("user", "two"),
    makeRow("user", "three"),
  ];
  const record = formatRecord(history, 64_000);
  expect(record).toContain("user: one");
  expect(record).toContain("result of execute");
  expect(record).not.toMatch(/rules|two|three/);
  expect(
    formatRecord(
      Array.from({ length: 99 }, () => longRow),
      10_000,
    ).length,
  ).toBeLessThan(15_100);
  const options = {
    context_limit: 1_000,
    threshold: 70,
    model_id: "m",
    usage: null,
    call_id: "c",
    now: 0,
    source: "automatic",
    instructions: "",
  } as const;
  const [summaryRow, call, result] = toCompactionRows({ ...options, summary: "SUM", prompts: ["one"], history });
  expect(summaryRow).toMatchObject({ role: "user", visibility: "model", replayed: 2 });
  expect(summaryRow?.content[0]?.text).toMatch(/SUM[\s\S]*<message>\none\n<\/message>/);
  expect([call, result]).toMatchObject([
    { role: "assistant", visibility: "user", content: [{ tool_name: "chat_summarized" }] },
    { role: "tool", visibility: "user", content: [{ result: { summary: "SUM", usage_percent: 70 } }] },
  ]);
});
