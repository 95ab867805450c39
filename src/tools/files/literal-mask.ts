// Prevents `[hidden]`, which models see instead of secrets, from being written over the secrets in a file.
import { HIDDEN } from "../mask.ts";
import { type ToolContext, ToolError } from "../tool.ts";
import { MAX_ATTACHMENT_BYTES } from "./attach-file.ts";

/** Says what `[hidden]` is to a model that edits it. */
export const HIDDEN_HINT = `${HIDDEN} stands for a secret that the chat doesn't show.`;

/** Returns how often a text contains `[hidden]`. */
export const countHidden = (text: string): number => text.split(HIDDEN).length - 1;

/**
 * Rejects lines with `[hidden]` that the file doesn't contain, if the file contains a secret. Without a secret, such a line is ordinary text,
 * such as the selector of an attribute in CSS.
 */
export const requireNoLiteralMask = async (
  { agent, mask }: Pick<ToolContext, "agent" | "mask">,
  { path, text }: { readonly path: string; readonly text: string },
  signal: AbortSignal,
): Promise<void> => {
  const lines = text.split("\n").filter((line) => line.includes(HIDDEN));
  if (lines.length === 0) return;
  const current = await readCurrent(agent, path, signal);
  if (current === undefined) return;
  const currentLines = new Set(current.split("\n"));
  if (lines.every((line) => currentLines.has(line)) || (await mask.longText(current)) === current) return;
  throw new ToolError(
    `${path} contains a secret that the chat doesn't show, and the new text has ${HIDDEN} instead. Nothing was changed. Use edit_files to change only the text around it.`,
  );
};

/** Returns the beginning of the file, or undefined if it doesn't exist. */
const readCurrent = async (
  agent: ToolContext["agent"],
  path: string,
  signal: AbortSignal,
): Promise<string | undefined> => {
  const query = new URLSearchParams({ path, limit: String(MAX_ATTACHMENT_BYTES) });
  try {
    const bytes = await agent.bytes(`/read-file?${query}`, MAX_ATTACHMENT_BYTES, signal);
    return new TextDecoder().decode(bytes);
  } catch (error) {
    if (error instanceof ToolError && /no such file/i.test(error.message)) return undefined;
    throw error;
  }
};
