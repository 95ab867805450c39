// Converting stored messages to provider requests.
import { expect, test } from "bun:test";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import { type Attachment, loadNoAttachment } from "#src/llm/attachments.ts";
import type { PromptMessage } from "#src/llm/model.ts";
import { buildPrompt } from "#src/llm/prompt.ts";
import { toMessages } from "#src/llm/request/messages.ts";
import { getReceiver } from "#src/llm/request/receivers.ts";

const makeMessage = (role: PromptMessage["role"], ...content: MessagePart[]): PromptMessage => ({ role, content });
const makeCall = (id: string): MessagePart => ({
  type: "tool-call",
  tool_call_id: id,
  tool_name: "look",
  args: { at: 1 },
});
const makeResult = (id: string, value: unknown, is_error = false): MessagePart => ({
  type: "tool-result",
  tool_call_id: id,
  tool_name: "look",
  result: value,
  is_error,
});

test("[MO-35] sends text, referenced code and context as text, and omits parts that a model cannot use", async () => {
  const prompt = await buildPrompt(
    [
      makeMessage("system", { type: "text", text: "be kind" }),
      makeMessage(
        "user",
        { type: "text", text: "why" },
        { type: "file-reference", file_name: "a.ts", start_line: 2, end_line: 3, content: "x = 1" },
        { type: "hook-context", text: "it is late" },
        { type: "hook-notice", text: "for people" },
      ),
      makeMessage("assistant", { type: "reasoning", text: "hm" }, { type: "source", url: "https://x.example" }),
      makeMessage("assistant", { type: "reasoning", text: "hm", provider_metadata: { a: { signature: "s" } } }),
    ],
    loadNoAttachment,
  );
  expect(prompt).toEqual([
    { role: "system", content: "be kind" },
    {
      role: "user",
      content: [
        { type: "text", text: "why" },
        { type: "text", text: '<file name="a.ts:2-3">\nx = 1\n</file>' },
        { type: "text", text: "it is late" },
      ],
    },
    { role: "assistant", content: [{ type: "reasoning", text: "hm", providerOptions: { a: { signature: "s" } } }] },
  ]);
});

test("[MO-35] every call has a result: one message holds a step's results, and an error replaces a lost result", async () => {
  const history = await buildPrompt(
    [
      makeMessage("user", { type: "text", text: "look" }),
      makeMessage("assistant", makeCall("1"), makeCall("2"), makeCall("3")),
      makeMessage("tool", makeResult("1", { ok: true })),
      makeMessage("tool", makeResult("2", "no", true)),
      makeMessage("assistant", makeCall("4")),
      makeMessage("user", { type: "text", text: "go on" }),
    ],
    loadNoAttachment,
  );
  const prompt = toMessages(history, {
    receiver: getReceiver("openai-compat", { useResponses: false, base_url: "", model: "m" }),
    getOfferedName: (name) => name,
    toOfferedArgs: (_, args) => args,
    hasTools: true,
    hasSystem: true,
  });
  expect(prompt.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant", "tool", "user"]);
  const results = prompt.flatMap(({ role, content }) => (role === "tool" ? content : []));
  expect(results).toMatchObject([
    { toolCallId: "1", output: { type: "json", value: { ok: true } } },
    { toolCallId: "2", output: { type: "error-text", value: "no" } },
    { toolCallId: "3", output: { type: "error-text" } },
    { toolCallId: "4", output: { type: "error-text" } },
  ]);
});

test("[MO-41] open models receive the reasoning of turns with tool calls, from any model, and no other reasoning", async () => {
  const makeReasoning = (text: string, fields = {}): MessagePart => ({ type: "reasoning", text, ...fields });
  const signed = { provider_metadata: { anthropic: { signature: "s" } } };
  const messages = [
    makeMessage("user", { type: "text", text: "one" }),
    makeMessage("assistant", makeReasoning("nothing to call"), { type: "text", text: "1" }),
    makeMessage("user", { type: "text", text: "two" }),
    makeMessage("assistant", makeReasoning("I look", signed), makeCall("1")),
    makeMessage("tool", makeResult("1", 1)),
    makeMessage("assistant", makeCall("2")),
    makeMessage("tool", makeResult("2", 1)),
    makeMessage("assistant", makeReasoning("so"), { type: "text", text: "2" }),
  ];
  const buildThoughts = async (form: "tools" | "all_tools" | "none") =>
    (await buildPrompt(messages, loadNoAttachment, { thoughts: form })).flatMap(({ role, content }) =>
      role === "assistant" ? [content.flatMap((part) => (part.type === "reasoning" ? [part] : []))] : [],
    );
  const makeReasoningParts = (text: string) => [{ type: "reasoning", text }];
  expect(await buildThoughts("tools")).toEqual([
    [],
    makeReasoningParts("I look"),
    [],
    makeReasoningParts("so"),
  ] as never);
  expect(await buildThoughts("all_tools")).toEqual([
    [],
    makeReasoningParts("I look"),
    makeReasoningParts("."),
    makeReasoningParts("so"),
  ] as never);
  expect(await buildThoughts("none")).toEqual([[], [], [], []]);
});

test("[MO-35] sends attachments by type: text as text, images as files, and a note for a missing one", async () => {
  const files: Record<string, Attachment> = {
    note: { name: "note.md", media_type: "text/markdown", bytes: new TextEncoder().encode("# hi") },
    cat: { name: "cat.png", media_type: "image/png", bytes: new Uint8Array([1, 2, 3]) },
  };
  const parts = ["note", "cat", "lost"].map((file_id): MessagePart => ({ type: "file", file_id, name: file_id }));
  const [message] = await buildPrompt([makeMessage("user", ...parts)], async (id) => files[id]);
  expect(message?.content).toEqual([
    { type: "text", text: '<file name="note.md">\n# hi\n</file>' },
    {
      type: "file",
      filename: "cat.png",
      mediaType: "image/png",
      data: { type: "data", data: new Uint8Array([1, 2, 3]) },
    },
    { type: "text", text: '[The attachment "lost" is no longer there.]' },
  ] as never);
});

test("[MO-35] a request contains up to 24 MiB of attachments, newest first; a note replaces each older one, which is not loaded", async () => {
  const makeScan = (count: number): Attachment => ({
    name: "scan.pdf",
    media_type: "application/pdf",
    bytes: new Uint8Array(count * 1024 * 1024),
  });
  let loadCount = 0;
  const makeFile = (file_id: string): MessagePart => ({ type: "file", file_id, name: "scan.pdf" });
  const history = [
    makeMessage("user", ...Array.from({ length: 500 }, () => makeFile("10"))),
    makeMessage("user", makeFile("10"), makeFile("4")),
    makeMessage("user", makeFile("10")),
  ];
  const prompt = await buildPrompt(history, async (id) => {
    loadCount += 1;
    return makeScan(Number(id));
  });
  const note =
    '[The attachment "scan.pdf" is left out, because the attachments of this conversation are too large together.]';
  const shown = prompt.map(({ content }) =>
    (content as { type: string; text?: string }[]).map(({ type, text }) => text ?? type),
  );
  expect(shown).toEqual([Array.from({ length: 500 }, () => note), ["file", "file"], ["file"]]);
  expect(loadCount).toBe(3);
});
