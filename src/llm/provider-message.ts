// Removes repetitions from a provider's error: the packages repeat the same sentence as a message, as the JSON around it, and as its code.
// Pure.
import { parseJson } from "#base/json/read.ts";

/** Returns the texts without the ones that repeat an earlier one or wrap it in JSON, each code after its message. */
export const removeRepetitions = (texts: readonly string[]): string => {
  const unique: string[] = [];
  for (const text of texts) {
    for (const one of splitError(text)) {
      if (!unique.some((before) => before.toLowerCase().includes(one.toLowerCase()))) unique.push(one);
    }
  }
  return unique.join(" ");
};

/** Returns the message and code of an error in JSON, or any other text unchanged. */
const splitError = (text: string): readonly string[] => {
  const error = findError(text);
  const message = error?.message;
  if (typeof message !== "string" || message === "") return [text];
  const code = [error?.code, error?.type].find((one) => typeof one === "string" && one !== "");
  return [...splitError(message), ...(code === undefined ? [] : [`(${code})`])];
};

type ErrorFields = { readonly message?: unknown; readonly code?: unknown; readonly type?: unknown };

/** Parses `{"error": {"message": ...}}` or `{"message": ...}`, also inside an array of one. */
const findError = (text: string): ErrorFields | undefined => {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    const value = parseJson(text);
    const outer = (Array.isArray(value) ? value[0] : value) as { error?: unknown } | null;
    const inner = typeof outer?.error === "object" && outer.error !== null ? outer.error : outer;
    return typeof inner === "object" && inner !== null ? (inner as ErrorFields) : undefined;
  } catch {
    return undefined;
  }
};
