// Lists the encodings of a secret that a program's output may contain: plain, JSON, HCL, URL-encoded and base64. Pure.

/** Bytes per line of wrapped base64: 76 characters for `base64`, 64 for PEM. */
const BASE64_LINE_BYTES = [57, 48];

/** Returns all encodings to search for, including the plain text; some may be identical. */
export const listEncodings = (secret: string): string[] => [
  secret,
  ...listQuotedSpellings(secret),
  ...listUrlSpellings(secret),
  ...listBase64Spellings(secret),
];

/** Returns the secret as it appears in JSON, in Go's JSON, which escapes three more characters, and in HCL strings. */
const listQuotedSpellings = (secret: string): string[] => {
  const json = JSON.stringify(secret).slice(1, -1);
  const go = json.replace(/[<>&]/g, (one) => `\\u00${one.charCodeAt(0).toString(16)}`);
  // JSON inside a JSON string.
  const twice = JSON.stringify(json).slice(1, -1);
  return [json, go, twice, json.replace(/([$%])(?=\{)/g, "$1$1")];
};

/** Characters that Go leaves unencoded in a URL's path and in its user and password. */
const UNENCODED_IN_URLS = [/%(?:24|26|2B|3D|3A|40)/g, /%(?:24|26|2B|3D|2C|3B)/g];

/** Returns percent-encoded forms: minimal and maximal, with spaces as in forms, and hex digits in both cases. */
const listUrlSpellings = (secret: string): string[] => {
  const usual = encodeURIComponent(secret.toWellFormed());
  const strict = usual.replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
  const lax = UNENCODED_IN_URLS.map((unencoded) => strict.replace(unencoded, decodeURIComponent));
  return [usual, strict, strict.replaceAll("%20", "+"), strict.replaceAll("%2F", "/"), ...lax].flatMap((one) => [
    one,
    one.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
  ]);
};

/**
 * Returns the secret in both base64 alphabets, whatever precedes and follows it in the encoded data: three bytes become four characters, so
 * there are three alignments, and the characters at the edges, which depend on neighbors, are left out. A long secret is also searched for
 * line by line.
 */
const listBase64Spellings = (secret: string): string[] => {
  const bytes = Buffer.from(secret);
  const shifted = [0, 1, 2].map((before) => encodeAtOffset(bytes, before));
  const lines = BASE64_LINE_BYTES.filter((lineBytes) => bytes.length > lineBytes).flatMap((lineBytes) =>
    Array.from({ length: Math.ceil(bytes.length / lineBytes) }, (_, line) =>
      encodeAtOffset(bytes.subarray(line * lineBytes, (line + 1) * lineBytes), 0),
    ),
  );
  return [...shifted, ...lines].flatMap((one) => [one, one.replaceAll("+", "-").replaceAll("/", "_")]);
};

/** Returns the base64 characters that depend only on these bytes, if `before` bytes precede them. */
const encodeAtOffset = (bytes: Uint8Array, before: number): string =>
  Buffer.concat([Buffer.alloc(before), bytes])
    .toString("base64")
    .slice(Math.ceil((before * 4) / 3), Math.floor(((before + bytes.length) * 4) / 3));
