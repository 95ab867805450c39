// Parses and formats file names in Content-Disposition (RFC 6266 and RFC 8187). A name is never used as a path: it is only stored and
// shown. Pure.
import { invalidField } from "#base/errors.ts";

const MAX_NAME_BYTES = 255;
/** Control characters and bidirectional marks. */
const HIDDEN_CHARACTERS = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
const PLAIN_NAME = /(?:^|;)\s*filename\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))/i;
const ENCODED_NAME = /(?:^|;)\s*filename\*\s*=\s*utf-8'[^']*'([^\s;"]+)/i;

/** Returns the cleaned name without folders. Rejects with 400 when it is missing or too long. */
export const parseFileName = (header: string | null): string => {
  const invalidName = (detail: string) => invalidField("Content-Disposition", detail);
  const text = header ?? "";
  const [, quoted, token] = PLAIN_NAME.exec(text) ?? [];
  const rawName = decodeName(ENCODED_NAME.exec(text)?.[1]) ?? quoted?.replaceAll(/\\(.)/g, "$1") ?? token ?? "";
  const name = (toUtf8(rawName).replaceAll(HIDDEN_CHARACTERS, "").split(/[\\/]/).at(-1) ?? "").trim();
  if (name === "") throw invalidName('must carry the name of the file: attachment; filename="notes.txt"');
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) throw invalidName(`has a name of more than ${MAX_NAME_BYTES} bytes`);
  return name;
};

/** Returns `inline` or `attachment` with the name, in ASCII for old clients and encoded for all others. */
export const formatDisposition = (kind: "inline" | "attachment", name: string): string => {
  const ascii = name.replaceAll(/[^\x20-\x7e]|["\\%]/g, "_");
  const encoded = encodeURIComponent(name).replaceAll(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16)}`);
  return `${kind}; filename="${ascii}"; filename*=UTF-8''${encoded}`;
};

const decodeName = (encoded: string | undefined): string | undefined => {
  try {
    return encoded === undefined ? undefined : decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
};

/** Headers are decoded as Latin-1, but many clients send UTF-8. */
const toUtf8 = (text: string): string => {
  if ([...text].some((char) => char > "\u00ff")) return text.toWellFormed();
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(text, "latin1"));
  } catch {
    return text;
  }
};
