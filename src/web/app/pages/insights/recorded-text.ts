// Recorded prompts and answers as people read them, in every dialect. Pure.

/** The body of a request, indented. One whose middle was left out stays as it is. */
export const formatPrompt = (prompt: string): string => {
  const json = parse(prompt);
  return json === undefined ? prompt : JSON.stringify(json, null, 2);
};

/** What the model has said, thought and called, in order; the answer as it is where nothing of that is found. */
export const formatAnswer = (answer: string): string => {
  const whole = parse(answer);
  const events =
    whole === undefined ? [...answer.matchAll(/^data:(.*)$/gm)].map(([, data = ""]) => parse(data)) : [whole];
  const said = events.flat().map(textIn).join("");
  return said.trim() === "" ? answer : said;
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

/** Where answers have their text, and what a call of a tool is named. */
const TEXTS = ["delta", "content_block", "message", "content", "choices", "output", "candidates", "parts"] as const;
const WORDS = ["text", "thinking", "reasoning_content", "partial_json", "arguments", "refusal"] as const;

const textIn = (event: unknown): string => {
  if (!isObject(event)) return "";
  const { type } = event;
  // Events of the Responses API repeat at their ends what their deltas have said.
  if (typeof type === "string" && type.startsWith("response.") && !type.endsWith(".delta")) return "";
  return walk(event);
};

const walk = (value: unknown): string => {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(walk).join("");
  if (!isObject(value)) return "";
  const words = WORDS.map((name) => value[name]).filter((word) => typeof word === "string");
  return [...words, ...TEXTS.map((name) => walk(value[name])), callIn(value)].join("");
};

/** A call of a tool: its name, and its arguments where they come with it. */
const callIn = (value: Json): string => {
  const inner = [value.functionCall, value.function].find(isObject);
  const calls = Array.isArray(value.tool_calls) ? value.tool_calls.map(walk).join("") : "";
  if (inner)
    return `${nameOf(inner)}${typeof inner.arguments === "string" ? inner.arguments : argumentsOf(inner.args)}`;
  if (value.type === "tool_use") return `${nameOf(value)}${argumentsOf(value.input)}`;
  return calls;
};

const nameOf = ({ name }: Json): string => (typeof name === "string" && name !== "" ? `\n${name} ` : "");
const argumentsOf = (given: unknown): string =>
  isObject(given) && Object.keys(given).length > 0 ? JSON.stringify(given) : "";
