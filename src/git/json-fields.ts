// Reads fields of untrusted JSON. Each function returns the value if it has the expected type, otherwise an empty value. Pure.

export const getObject = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};

export const toObjects = (value: unknown): readonly Readonly<Record<string, unknown>>[] =>
  Array.isArray(value) ? value.slice(0, 1_000).map(getObject) : [];

/** At most 1,024 characters. */
export const getText = (value: unknown): string => (typeof value === "string" ? value.slice(0, 1_024) : "");

/** Returns an integer of at least 0; also parses text ("1000+" is 1000). */
export const toCount = (value: unknown): number => {
  const number = typeof value === "string" ? Number.parseInt(value, 10) : value;
  return typeof number === "number" && Number.isSafeInteger(number) && number >= 0 ? number : 0;
};

/** Returns a web URL, or an empty string. */
export const getUrl = (value: unknown): string => {
  const text = getText(value);
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) ? text : "";
};
