// Parses the arguments of a tool call: JSON text, which a model at its limit leaves incomplete. Used by stream.ts. Incomplete text is never
// repaired: after a missing brace another member may be missing, and a command without its folder is another command (rule TO-7).
import { parseJson } from "#base/json/read.ts";

/**
 * Returns the value; an empty object for empty text. Invalid JSON becomes `{input: text}`: the call fails with an error, and the model sees
 * why.
 */
export const parseArguments = (text: string): unknown => {
  if (text.trim() === "") return {};
  const once = tryParseJson(text);
  // Some models encode their JSON twice.
  const nested = typeof once?.value === "string" ? tryParseJson(once.value) : undefined;
  const parsedObject = typeof nested?.value === "object" && nested.value !== null ? nested : once;
  return parsedObject === undefined ? { input: text } : parsedObject.value;
};

const tryParseJson = (text: string): { value: unknown } | undefined => {
  try {
    return { value: parseJson(text) };
  } catch {
    return undefined;
  }
};
