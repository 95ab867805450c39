// The arguments of a tool call, as a provider has sent them: JSON text, which a model that has run into its limit leaves unfinished. Used
// by stream.ts. Nothing is added to it: behind a missing brace another member may be missing, and a command without its folder is another
// command (rule TO-7).

/**
 * The value; an object without arguments for no text. Text that is no JSON comes as `{input: text}`: the call is answered with an error and the model sees why.
 */
export const parseArguments = (text: string): unknown => {
  if (text.trim() === "") return {};
  const once = parsed(text);
  // Some models write their JSON as JSON again.
  const inside = typeof once?.value === "string" ? parsed(once.value) : undefined;
  const whole = typeof inside?.value === "object" && inside.value !== null ? inside : once;
  return whole === undefined ? { input: text } : whole.value;
};

const parsed = (text: string): { value: unknown } | undefined => {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
};
