// The arguments of a tool call, as a provider has sent them: JSON text, which a model that has run into its limit leaves unfinished. Used
// by stream.ts. Mends only what cannot be misread, so that half a command or half a file is never taken for a whole one (rule TO-7).

/**
 * The value; an object without arguments for no text. Text that breaks off after a whole value, inside nothing but objects, is closed.
 * Anything else that is no JSON comes as `{input: text}`: the call is answered with an error and the model sees why.
 */
export const argumentsOf = (text: string): unknown => {
  if (text.trim() === "") return {};
  const once = parsed(text) ?? parsed(closed(text));
  // Some models write their JSON as JSON again.
  const inside = typeof once?.value === "string" ? parsed(once.value) : undefined;
  const whole = typeof inside?.value === "object" && inside.value !== null ? inside : once;
  return whole === undefined ? { input: text } : whole.value;
};

const parsed = (text: string | undefined): { value: unknown } | undefined => {
  if (text === undefined) return undefined;
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
};

/** With the braces that are missing at its end; undefined when more than braces may be missing. */
const closed = (text: string): string | undefined => {
  const open: string[] = [];
  let isInString = false;
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at];
    if (isInString) {
      if (letter === "\\") at += 1;
      else if (letter === '"') isInString = false;
    } else if (letter === '"') isInString = true;
    else if (letter === "{" || letter === "[") open.push(letter);
    else if (letter === "}" || letter === "]") open.pop();
  }
  // A text is not whole, a list may have more to come, and a number more digits.
  const end = text.trimEnd();
  if (isInString || open.length === 0 || open.includes("[") || !/["}\]el]$/.test(end)) return undefined;
  return end + "}".repeat(open.length);
};
