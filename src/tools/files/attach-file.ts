// The tool `attach_file`: stores a file of the workspace with the chat, for users to open (facts/chats 5.1, 3.4). Its type is detected from
// its content, as for uploads.
import { Type as t } from "@sinclair/typebox";
import type { SecretMask } from "../mask.ts";
import { defineTool, ToolError } from "../tool.ts";
import description from "./attach-file.txt" with { type: "text" };

/** Maximum size of a file, as for uploads. */
export const MAX_ATTACHMENT_BYTES = 10_485_760;
const MAX_NAME_LENGTH = 255;
/** Control characters, and characters that reverse the direction of text. */
const INVISIBLE_CHARACTERS = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

export const attachFile = defineTool({
  name: "attach_file",
  description,
  changes_nothing: true,
  input_schema: t.Object(
    {
      path: t.String({
        minLength: 1,
        description: "The path of the file, absolute or relative to the agent's folder; ~ is the home folder.",
      }),
      name: t.Optional(t.String({ minLength: 1, description: "The display name; default: the file's name." })),
    },
    { additionalProperties: false },
  ),
  async run({ agent, services, mask }, { path, name: given }, signal) {
    const query = new URLSearchParams({ path, limit: String(MAX_ATTACHMENT_BYTES + 1) });
    const bytes = await agent.bytes(`/read-file?${query}`, MAX_ATTACHMENT_BYTES + 1, signal);
    if (bytes.byteLength > MAX_ATTACHMENT_BYTES)
      throw new ToolError(`The file is larger than ${MAX_ATTACHMENT_BYTES} bytes.`);
    if (bytes.byteLength === 0) throw new ToolError("The file is empty.");
    const baseName = (given ?? path).split("/").at(-1) ?? "";
    const name = baseName.replaceAll(INVISIBLE_CHARACTERS, "").trim();
    if (name === "" || Buffer.byteLength(name) > MAX_NAME_LENGTH) {
      throw new ToolError(`The file needs a name of at most ${MAX_NAME_LENGTH} bytes: say one with name.`);
    }
    const masked = await maskFile(bytes, mask);
    if (!masked) throw new ToolError("The file contains a secret and is not plain text, so it was not attached.");
    const { file_id, media_type } = await services.attachFile(name, masked);
    const note = masked === bytes ? {} : { note: "Secrets in the file were replaced by [hidden]." };
    return { ok: true, path, file_id, name, media_type, size: masked.byteLength, ...note };
  },
});

/** Returns the file without secrets, or the same bytes if it has none; undefined for a file with secrets that is not UTF-8 text. */
export const maskFile = async (bytes: Uint8Array, mask: SecretMask): Promise<Uint8Array | undefined> => {
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  const masked = await mask.longText(text);
  // Text in UTF-16 has a zero byte next to each letter.
  const withoutZeros = text.includes("\0") ? text.replaceAll("\0", "") : text;
  const isClean = masked === text && (withoutZeros === text || (await mask.longText(withoutZeros)) === withoutZeros);
  if (isClean) return bytes;
  const isText = withoutZeros === text && Buffer.from(text).equals(bytes);
  return isText ? new TextEncoder().encode(masked) : undefined;
};
