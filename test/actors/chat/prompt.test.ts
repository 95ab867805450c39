// The order of a prompt's blocks, and the parts that providers are asked to cache.
import { expect, test } from "bun:test";
import { assemblePrompt, type PromptBlock, SLOTS } from "#actors/chat/prompt/prompt.ts";
import { loadNoAttachment } from "#src/llm/attachments.ts";
import { addCacheMarks } from "#src/llm/cache-marks.ts";
import type { PromptMessage } from "#src/llm/model.ts";
import { buildPrompt } from "#src/llm/prompt.ts";

const makeMessage = (role: PromptMessage["role"], text: string): PromptMessage => ({
  role,
  content: [{ type: "text", text }],
});

test("[PA-1] blocks are sorted by slot, regardless of the order in which they are added, the chat's own prompt is third, and empty blocks are omitted", () => {
  const blocks = SLOTS.filter((slot) => slot !== "chat")
    .map((slot): PromptBlock => ({ slot, text: ` ${slot}\n` }))
    .reverse();
  const extraBlocks: PromptBlock[] = [
    { slot: "mode", text: "and more of it" },
    { slot: "skills", text: "  " },
  ];
  const prompt = assemblePrompt(
    [...blocks, ...extraBlocks],
    [makeMessage("system", "chat"), makeMessage("user", "hi"), makeMessage("assistant", "ho")],
  );
  expect(prompt.map(({ role }) => role)).toEqual(["system", "user", "assistant"]);
  const message = prompt[0]?.content[0]?.text?.split("\n\n");
  expect(message).toEqual(SLOTS.flatMap((slot) => (slot === "mode" ? ["mode", "and more of it"] : [slot])));
  expect(assemblePrompt([], [makeMessage("user", "hi")])).toEqual([makeMessage("user", "hi")]);
});

test("[PA-2] a provider that caches only marked content gets marks on the system prompt and the ends of the two newest messages", async () => {
  const history = ["user", "assistant", "user", "assistant", "user"].map((role, index) =>
    makeMessage(role as PromptMessage["role"], `message ${index}`),
  );
  const prompt = await buildPrompt([makeMessage("system", "rules"), ...history], loadNoAttachment);
  const marked = addCacheMarks("anthropic", prompt);
  const isMarked = marked.map(({ providerOptions }) => providerOptions?.anthropic !== undefined);
  expect(isMarked).toEqual([true, false, false, true, false, true]);
  expect(addCacheMarks("google", prompt)).toEqual(prompt);
});
