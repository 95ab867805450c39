// Names of files in the header Content-Disposition, read and written as RFC 6266 and RFC 8187 say. A name is never a path here: it is
// stored and shown, and no file is ever called so. Pure.
import { invalidField } from "#base/errors.ts";

const LONGEST = 255;
/** Control characters, and those that turn the direction of text around. */
const HIDDEN = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
const PLAIN = /(?:^|;)\s*filename\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))/i;
const ENCODED = /(?:^|;)\s*filename\*\s*=\s*utf-8'[^']*'([^\s;"]+)/i;

/** The name in the header, cleaned and without folders. 400 when none exists or it is too long. */
export const parseFileName = (header: string | null): string => {
  const wrong = (detail: string) => invalidField("Content-Disposition", detail);
  const text = header ?? "";
  const [, quoted, token] = PLAIN.exec(text) ?? [];
  const given = decodedName(ENCODED.exec(text)?.[1]) ?? quoted?.replaceAll(/\\(.)/g, "$1") ?? token ?? "";
  const name = (utf8Of(given).replaceAll(HIDDEN, "").split(/[\\/]/).at(-1) ?? "").trim();
  if (name === "") throw wrong('must carry the name of the file: attachment; filename="notes.txt"');
  if (Buffer.byteLength(name) > LONGEST) throw wrong(`has a name of more than ${LONGEST} bytes`);
  return name;
};

/** `inline` or `attachment` with the name, in ASCII for old readers and encoded for all others. */
export const formatDisposition = (kind: "inline" | "attachment", name: string): string => {
  const ascii = name.replaceAll(/[^\x20-\x7e]|["\\%]/g, "_");
  const encoded = encodeURIComponent(name).replaceAll(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16)}`);
  return `${kind}; filename="${ascii}"; filename*=UTF-8''${encoded}`;
};

const decodedName = (encoded: string | undefined): string | undefined => {
  try {
    return encoded === undefined ? undefined : decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
};

/** Headers come as Latin-1; many clients mean UTF-8. */
const utf8Of = (text: string): string => {
  if ([...text].some((char) => char > "\u00ff")) return text.toWellFormed();
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(text, "latin1"));
  } catch {
    return text;
  }
};
