// Parses the arguments of a tool call: JSON text, incomplete if the model reached its output limit. Incomplete text is never
// repaired: it may lack more than a brace, and a command without its working directory does something else (rule TO-7).
import { parseJson } from "#base/json/read.ts";

/**
 * Returns the value; an empty object for empty text. Invalid JSON becomes `{input: text}`: the call fails with an error, and the model sees
 * why.
 */
export const parseArguments = (text: string): unknown => {
  if (text.trim() === "") return {};
  const parsed = tryParseJson(text);
  // Some models encode their JSON twice.
  const nested = typeof parsed?.value === "string" ? tryParseJson(parsed.value) : undefined;
  const parsedObject = typeof nested?.value === "object" && nested.value !== null ? nested : parsed;
  return parsedObject === undefined ? { input: text } : parsedObject.value;
};

const tryParseJson = (text: string): { value: unknown } | undefined => {
  try {
    return { value: parseJson(text) };
  } catch {
    return undefined;
  }
};
