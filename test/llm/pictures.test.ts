// The screen images in a model's request: the newest ones, and descriptions of the others.
import { expect, test } from "bun:test";
import type { Attachment } from "#src/llm/attachments.ts";
import type { PromptMessage } from "#src/llm/model.ts";
import { decodedPictures, scaleToFit } from "#src/llm/pictures.ts";
import { buildPrompt } from "#src/llm/prompt.ts";
import { until } from "#test/support/until.ts";

const PNG = Uint8Array.of(1, 2, 3);
const makeStep = (n: number, overrides: Record<string, unknown> = { is_media: true }): PromptMessage[] => {
  const call = { tool_call_id: `${n}`, tool_name: "computer" };
  const result = { action: "screenshot", image: { file_id: `file-${n}`, media_type: "image/png" } };
  return [
    { role: "assistant", content: [{ type: "tool-call", ...call, args: {} }] },
    { role: "tool", content: [{ type: "tool-result", ...call, result, ...overrides }] },
  ];
};

test("[DT-5] sends the newest eight images with their text; missing images and those of other tools become text", async () => {
  const requests: string[] = [];
  const loadAttachment = async (id: string): Promise<Attachment | undefined> => {
    requests.push(id);
    return id === "file-9" ? undefined : { name: "screenshot.png", media_type: "image/png", bytes: PNG };
  };
  const messages = [...Array.from({ length: 10 }, (_, n) => makeStep(n)).flat(), ...makeStep(10, {})];
  const prompt = await buildPrompt(messages, loadAttachment);
  const outputs = prompt.flatMap(({ role, content }) =>
    role === "tool" ? content.flatMap((part) => (part.type === "tool-result" ? [part.output] : [])) : [],
  );
  const kinds: string[] = outputs.map(({ type }) => type);
  expect(kinds.join(" ")).toBe(`json json ${"content ".repeat(7)}json json`);
  expect(outputs[2]).toEqual({
    type: "content",
    value: [
      { type: "text", text: '{"action":"screenshot","image":{"file_id":"file-2","media_type":"image/png"}}' },
      { type: "file", filename: "screenshot.png", mediaType: "image/png", data: { type: "data", data: PNG } },
    ],
  });
  // The newest images are loaded first, because older ones may be omitted.
  expect(requests).toEqual(Array.from({ length: 8 }, (_, n) => `file-${9 - n}`));
});

const loadCat = async (): Promise<Attachment> => ({ name: "cat.png", media_type: "image/png", bytes: PNG });
const makeUserMessage = (text: string): PromptMessage => ({ role: "user", content: [{ type: "text", text }] });

test("[MO-42] if an API accepts no images in results, they follow all results of the step", async () => {
  const steps = [...makeStep(1), ...makeStep(2)];
  const [firstCall, firstResult, secondCall, secondResult] = steps as [
    PromptMessage,
    PromptMessage,
    PromptMessage,
    PromptMessage,
  ];
  const calls: PromptMessage = { role: "assistant", content: [...firstCall.content, ...secondCall.content] };
  const messages = [calls, firstResult, secondResult, makeUserMessage("and?")];
  const prompt = await buildPrompt(messages, loadCat, { pictures: "behind" });
  expect(prompt.map(({ role }) => role)).toEqual(["assistant", "tool", "user"]);
  expect(prompt[1]?.content).toMatchObject([
    { toolCallId: "1", output: { type: "json" } },
    { toolCallId: "2", output: { type: "json" } },
  ]);
  const file = { type: "file", filename: "cat.png", mediaType: "image/png", data: { type: "data", data: PNG } };
  expect(prompt[2]?.content as unknown).toEqual([
    { type: "text", text: "[cat.png, from the result of the call 1 of computer.]" },
    file,
    { type: "text", text: "[cat.png, from the result of the call 2 of computer.]" },
    file,
    { type: "text", text: "and?" },
  ]);
});

test("[MO-42] tells a model without vision that images are omitted, in results and for attachments", async () => {
  const attached: PromptMessage = { role: "user", content: [{ type: "file", file_id: "f", name: "cat.png" }] };
  const prompt = await buildPrompt([attached, ...makeStep(1)], loadCat, { pictures: "none", documents: false });
  const text = JSON.stringify(prompt);
  expect(text).not.toContain('"type":"file"');
  expect(text.match(/this model takes only text/g)).toHaveLength(2);
});

test("[MO-42] scales down an image larger than providers accept, and a note names its original size; a small image is unchanged", async () => {
  const createPng = (width: number, height: number) => new Bun.Image(createBitmap(width, height)).png().bytes();
  const large: Attachment = { name: "large.png", media_type: "image/png", bytes: await createPng(2_400, 1_200) };
  const shown = await scaleToFit("large", large);
  expect(await new Bun.Image(shown.file.bytes).metadata()).toEqual({ width: 1_568, height: 784, format: "png" });
  expect(shown.note).toBe("The picture is shown with 1568 x 784 pixels; in full it has 2400 x 1200.");
  expect(await scaleToFit("large", large)).toBe(shown);
  const small: Attachment = { ...large, bytes: await createPng(1_920, 1_080) };
  expect(await scaleToFit("small", small)).toEqual({ file: small });
  const broken: Attachment = { ...large, bytes: PNG };
  expect(await scaleToFit("broken", broken)).toEqual({ file: broken });
});

test("[MO-42] large images wait until other decoded images release memory, and small images don't wait", async () => {
  const bytes = await new Bun.Image(createBitmap(3_000, 3_000)).png().bytes();
  const file: Attachment = { name: "large.png", media_type: "image/png", bytes };
  const reservation = await decodedPictures.take("others", 400_000_000, new AbortController().signal);
  const scaled: string[] = [];
  const scale = (owner_id: string, id: string) =>
    scaleToFit(id, { ...file, owner_id }).then(({ note }) => note && scaled.push(id));
  const scaling = [scale("eve", "eve 1"), scale("eve", "eve 2"), scale("eve", "eve 3"), scale("bob", "bob 1")];
  await until(() => decodedPictures.waiting === 4);
  const small = { ...file, bytes: await new Bun.Image(createBitmap(100, 100)).png().bytes() };
  expect(await scaleToFit("small picture", small)).toEqual({ file: small });
  expect(scaled).toEqual([]);
  // Now there is memory for two more.
  reservation.resize(320_000_000);
  expect([decodedPictures.waiting, decodedPictures.used]).toEqual([2, 320_000_000 + 2 * 36_000_000]);
  await Promise.all(scaling);
  expect(scaled.toSorted()).toEqual(["bob 1", "eve 1", "eve 2", "eve 3"]);
  reservation.release();
  expect(decodedPictures.used).toBe(0);
});

/** A single-color image without compression. */
const createBitmap = (width: number, height: number): Uint8Array => {
  const bytes = Buffer.alloc(54 + width * 3 * height, 120);
  bytes.write("BM");
  for (const [offset, value] of [
    [2, bytes.length],
    [6, 0],
    [10, 54],
    [14, 40],
    [18, width],
    [22, height],
    [30, 0],
  ] as const) {
    bytes.writeUInt32LE(value, offset);
  }
  bytes.writeUInt32LE(0x180001, 26);
  return bytes;
};
