// Detects a file's type by its first bytes. Pure. Used by uploads to chats and by the daemon, which never returns binary data as text.

const SIGNATURES: readonly (readonly [type: string, matches: (head: string) => boolean])[] = [
  ["image/png", (head) => head.startsWith("\u0089PNG\r\n\u001a\n")],
  ["image/jpeg", (head) => head.startsWith("\u00ff\u00d8\u00ff")],
  ["image/gif", (head) => head.startsWith("GIF87a") || head.startsWith("GIF89a")],
  ["image/webp", (head) => head.startsWith("RIFF") && head.slice(8, 12) === "WEBP"],
  ["application/pdf", (head) => head.startsWith("%PDF-")],
  ["application/zip", (head) => head.startsWith("PK\u0003\u0004") || head.startsWith("PK\u0005\u0006")],
  ["application/gzip", (head) => head.startsWith("\u001f\u008b")],
];
const MAX_SIGNATURE_BYTES = 16;
/** Control characters that occur in text: whitespace, line ends, escape sequences. */
const TEXT_CONTROLS = new Set([8, 9, 10, 11, 12, 13, 27]);

/** For unknown content. */
export const ANY_TYPE = "application/octet-stream";
/** Number of leading bytes used to decide whether a file is text. */
export const TEXT_SAMPLE_BYTES = 8_192;

/** Returns the media type of a known signature; undefined for text and everything else. */
export const detectSignature = (bytes: Uint8Array): string | undefined => {
  const head = String.fromCharCode(...bytes.subarray(0, MAX_SIGNATURE_BYTES));
  return SIGNATURES.find(([, matches]) => matches(head))?.[0];
};

/**
 * Returns the media type of a binary file by its first bytes; undefined for text. Text in an older encoding is text, because it has no
 * control characters.
 */
export const detectBinaryType = (head: Uint8Array): string | undefined => {
  const sample = head.subarray(0, TEXT_SAMPLE_BYTES);
  const signatureType = detectSignature(sample);
  if (signatureType !== undefined) return signatureType;
  const hasControl = sample.some((byte) => byte < 32 && !TEXT_CONTROLS.has(byte));
  return sample.includes(0) || (hasControl && !isUtf8(sample)) ? ANY_TYPE : undefined;
};

/** Returns true even when the last character is cut off. */
const isUtf8 = (bytes: Uint8Array): boolean => {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: true });
    return true;
  } catch {
    return false;
  }
};
