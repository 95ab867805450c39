// Formats recorded prompts and answers of every API dialect for display. Pure.

/** Formats a request body with indentation. A truncated body is returned unchanged. */
export const formatPrompt = (prompt: string): string => {
  const json = parse(prompt);
  return json === undefined ? prompt : JSON.stringify(json, null, 2);
};

/** Returns the model's text, reasoning and tool calls in order, or the raw answer if it contains none of these. */
export const formatAnswer = (answer: string): string => {
  const parsed = parse(answer);
  const events =
    parsed === undefined ? [...answer.matchAll(/^data:(.*)$/gm)].map(([, data = ""]) => parse(data)) : [parsed];
  const message = events.flat().map(extractText).join("");
  return message.trim() === "" ? answer : message;
};

type Json = Readonly<Record<string, unknown>>;

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null;

/** Members that hold the text of answers, and members that name a tool call. */
const TEXTS = ["delta", "content_block", "message", "content", "choices", "output", "candidates", "parts"] as const;
const TEXT_MEMBERS = ["text", "thinking", "reasoning_content", "partial_json", "arguments", "refusal"] as const;

const extractText = (event: unknown): string => {
  if (!isObject(event)) return "";
  const { type } = event;
  // The final events of the Responses API repeat the text of the deltas.
  if (typeof type === "string" && type.startsWith("response.") && !type.endsWith(".delta")) return "";
  return walk(event);
};

const walk = (value: unknown): string => {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(walk).join("");
  if (!isObject(value)) return "";
  const words = TEXT_MEMBERS.map((name) => value[name]).filter((word) => typeof word === "string");
  return [...words, ...TEXTS.map((name) => walk(value[name])), formatCall(value)].join("");
};

/** Returns the name of a tool call, and its arguments if they are included. */
const formatCall = (value: Json): string => {
  const inner = [value.functionCall, value.function].find(isObject);
  const calls = Array.isArray(value.tool_calls) ? value.tool_calls.map(walk).join("") : "";
  if (inner)
    return `${formatName(inner)}${typeof inner.arguments === "string" ? inner.arguments : formatArguments(inner.args)}`;
  if (value.type === "tool_use") return `${formatName(value)}${formatArguments(value.input)}`;
  return calls;
};

const formatName = ({ name }: Json): string => (typeof name === "string" && name !== "" ? `\n${name} ` : "");
const formatArguments = (given: unknown): string =>
  isObject(given) && Object.keys(given).length > 0 ? JSON.stringify(given) : "";
