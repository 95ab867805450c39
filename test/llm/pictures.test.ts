// What a model is shown of the screen: the newest pictures, and of others what was said of them.
import { expect, test } from "bun:test";
import type { PromptMessage } from "#src/llm/model.ts";
import { type Attachment, promptOf } from "#src/llm/prompt.ts";

const PNG = Uint8Array.of(1, 2, 3);
const step = (n: number, more: Record<string, unknown> = { is_media: true }): PromptMessage[] => {
  const call = { tool_call_id: `${n}`, tool_name: "computer" };
  const result = { action: "screenshot", image: { file_id: `file-${n}`, media_type: "image/png" } };
  return [
    { role: "assistant", content: [{ type: "tool-call", ...call, args: {} }] },
    { role: "tool", content: [{ type: "tool-result", ...call, result, ...more }] },
  ];
};

test("[DT-5] pictures are given as pictures beside their words, the newest eight; gone ones and those that are no tool's of ours are words alone", async () => {
  const asked: string[] = [];
  const attachments = async (id: string): Promise<Attachment | undefined> => {
    asked.push(id);
    return id === "file-9" ? undefined : { name: "screenshot.png", media_type: "image/png", bytes: PNG };
  };
  const messages = [...Array.from({ length: 10 }, (_, n) => step(n)).flat(), ...step(10, {})];
  const prompt = await promptOf(messages, attachments);
  const outputs = prompt.flatMap(({ role, content }) =>
    role === "tool" ? content.flatMap((part) => (part.type === "tool-result" ? [part.output] : [])) : [],
  );
  const kinds: string[] = outputs.map(({ type }) => type);
  expect(kinds.join(" ")).toBe(`json json ${"content ".repeat(7)}json json`);
  expect(outputs[2]).toEqual({
    type: "content",
    value: [
      { type: "text", text: '{"action":"screenshot","image":{"file_id":"file-2","media_type":"image/png"}}' },
      { type: "file", mediaType: "image/png", data: { type: "data", data: PNG } },
    ],
  });
  expect(asked).toEqual(Array.from({ length: 8 }, (_, n) => `file-${n + 2}`));
});
