// Formats recorded prompts and answers of every API dialect for display. Pure.

/** Formats a request body with indentation. A truncated body is returned unchanged. */
export const formatPrompt = (prompt: string): string => {
  const json = parseJson(prompt);
  return json === undefined ? prompt : JSON.stringify(json, null, 2);
};

/** Returns the model's text, reasoning and tool calls in order, or the raw answer if it contains none of these. */
export const formatAnswer = (answer: string): string => {
  const parsed = parseJson(answer);
  const events =
    parsed === undefined ? [...answer.matchAll(/^data:(.*)$/gm)].map(([, data = ""]) => parseJson(data)) : [parsed];
  const message = events.flat().map(extractText).join("");
  return message.trim() === "" ? answer : message;
};

type JsonObject = Readonly<Record<string, unknown>>;

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

const isObject = (value: unknown): value is JsonObject => typeof value === "object" && value !== null;

/** Members that hold the text of answers, and members that name a tool call. */
const CONTAINER_MEMBERS = [
  "delta",
  "content_block",
  "message",
  "content",
  "choices",
  "output",
  "candidates",
  "parts",
] as const;
const TEXT_MEMBERS = ["text", "thinking", "reasoning_content", "partial_json", "arguments", "refusal"] as const;

const extractText = (event: unknown): string => {
  if (!isObject(event)) return "";
  const { type } = event;
  // The final events of the Responses API repeat the text of the deltas.
  if (typeof type === "string" && type.startsWith("response.") && !type.endsWith(".delta")) return "";
  return collectText(event);
};

const collectText = (value: unknown): string => {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(collectText).join("");
  if (!isObject(value)) return "";
  const texts = TEXT_MEMBERS.map((name) => value[name]).filter((word) => typeof word === "string");
  return [...texts, ...CONTAINER_MEMBERS.map((name) => collectText(value[name])), formatCall(value)].join("");
};

/** Returns the name of a tool call, and its arguments if they are included. */
const formatCall = (value: JsonObject): string => {
  const call = [value.functionCall, value.function].find(isObject);
  const calls = Array.isArray(value.tool_calls) ? value.tool_calls.map(collectText).join("") : "";
  if (call)
    return `${formatName(call)}${typeof call.arguments === "string" ? call.arguments : formatArguments(call.args)}`;
  if (value.type === "tool_use") return `${formatName(value)}${formatArguments(value.input)}`;
  return calls;
};

const formatName = ({ name }: JsonObject): string => (typeof name === "string" && name !== "" ? `\n${name} ` : "");
const formatArguments = (callArguments: unknown): string =>
  isObject(callArguments) && Object.keys(callArguments).length > 0 ? JSON.stringify(callArguments) : "";
