// What a build has left behind for the next one, as it travels in JSON: base64 of a text.

/** Characters of base64: as much as a build may leave (src/provisioners/terraform/session.ts), so that what was pulled can be pushed. */
export const STATE_LIMIT = Math.ceil((16 * 1024 * 1024) / 3) * 4;

/** The text; undefined when it is not base64 of UTF-8. */
export const stateFrom = (base64: string): string | undefined => {
  if (base64.length > STATE_LIMIT || base64.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(base64))
    return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(base64, "base64"));
  } catch {
    return undefined;
  }
};
