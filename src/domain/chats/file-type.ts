// Detects a file's type by its content; the name only distinguishes kinds of text (facts/chats 4.14). Nothing is decoded or unpacked, so an
// image of absurd dimensions is harmless. Pure.

import { invalid, invalidField } from "#base/errors.ts";
import { ANY_TYPE, detectSignature } from "#base/file-signature.ts";
import { JsonProblem, parseJson } from "#base/json/read.ts";
import { CHAT_FILE_TYPES, type ChatFileType } from "#schema/chats/chat-file.ts";

const SVG_SEARCH_BYTES = 65_536;
/** Control characters that occur in text: whitespace, line ends, escape sequences. */
const TEXT_CONTROLS = new Set([9, 10, 11, 12, 13, 27]);
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Returns the declared type without parameters. Rejects with 400 for types that are never accepted. */
export const parseDeclaredType = (header: string | null): ChatFileType | typeof ANY_TYPE => {
  const name = (header ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
  const known = [...CHAT_FILE_TYPES, ANY_TYPE] as const;
  const found = known.find((type) => type === name);
  if (found) return found;
  throw invalidField("Content-Type", `must be one of ${known.join(", ")}`);
};

/** Returns the type to store. Rejects with 400 for content of a type that is not allowed or differs from the declared one. */
export const checkType = (
  bytes: Uint8Array,
  name: string,
  declared: ReturnType<typeof parseDeclaredType>,
): ChatFileType => {
  const found = detectType(bytes, name);
  if (!found) throw invalid("Unsupported file type.", [], "Images, PDF and text can be uploaded; SVG cannot.");
  if (declared === ANY_TYPE || declared === found) return found;
  const isKindOfText = ["text/markdown", "text/csv", "application/json"].includes(found);
  if (declared === "text/plain" && isKindOfText) return found;
  throw invalidField("Content-Type", `says ${declared}, but the file is ${found}`);
};

const detectType = (bytes: Uint8Array, name: string): ChatFileType | undefined => {
  const typeBySignature = detectSignature(bytes);
  if (typeBySignature !== undefined) return CHAT_FILE_TYPES.find((type) => type === typeBySignature);
  const text = bytes.some((byte) => byte < 32 && !TEXT_CONTROLS.has(byte)) ? undefined : decode(bytes);
  if (text === undefined || isSvg(text.slice(0, SVG_SEARCH_BYTES))) return undefined;
  const extension = /\.(\w+)$/.exec(name)?.[1]?.toLowerCase();
  if (extension === "json" && isJson(text)) return "application/json";
  if (extension === "md" || extension === "markdown") return "text/markdown";
  return extension === "csv" ? "text/csv" : "text/plain";
};

/** Returns whether the first element is svg; whitespace, declarations, a doctype and comments may precede it. */
const isSvg = (text: string): boolean => {
  for (let position = text.startsWith("\ufeff") ? 1 : 0; ; ) {
    while (/\s/.test(text.charAt(position))) position += 1;
    const end = text.startsWith("<!--", position) ? "-->" : text.startsWith("<?", position) ? "?>" : "";
    const isDoctype = /^<!doctype/i.test(text.slice(position, position + 9));
    if (end === "" && !isDoctype) return /^<(\w+:)?svg[\s/>]/i.test(text.slice(position, position + 64));
    const close = isDoctype ? findDoctypeEnd(text, position) : text.indexOf(end, position);
    if (close < 0) return false;
    position = close + (isDoctype ? 1 : end.length);
  }
};

/** A doctype may contain declarations in brackets, each with its own `>`. */
const findDoctypeEnd = (text: string, from: number): number => {
  const simple = text.indexOf(">", from);
  const bracket = text.indexOf("[", from);
  if (bracket < 0 || simple < bracket) return simple;
  const bracketEnd = text.indexOf("]", bracket);
  return bracketEnd < 0 ? -1 : text.indexOf(">", bracketEnd);
};

const decode = (bytes: Uint8Array): string | undefined => {
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
};

/** Text that is too large to be parsed is recognized by its first and last characters. */
const isJson = (text: string): boolean => {
  try {
    parseJson(text);
    return true;
  } catch (error) {
    const ends = `${text.trimStart()[0]}${text.trimEnd().at(-1)}`;
    return error instanceof JsonProblem && error.isTooLarge && (ends === "[]" || ends === "{}");
  }
};
