// Parses a consumer's answer strictly, because a denial that is misread would become a permission. Pure. Throws `AnswerProblem`; never
// truncates or ignores anything.
import { JsonProblem, parseJson } from "#base/json/read.ts";
import {
  AnswerProblem,
  type HookAnswer,
  type HookEvent,
  MAX_BYTES_BY_MEMBER,
  NO_DECISION,
  type Permission,
} from "./protocol.ts";
import { findRepeatedKey } from "./strict-json.ts";

type Members = Readonly<Record<string, unknown>>;

/** Parses the response. An empty body or object contains no decision. */
export const parseAnswer = (event: HookEvent, bytes: Uint8Array): HookAnswer => {
  if (bytes.length === 0) return NO_DECISION;
  const members = parseObject(bytes);
  requireOnly(members, ["permission", "model_context", "user_message"], "the answer");
  return {
    ...("permission" in members ? { permission: parsePermission(event, members.permission) } : {}),
    ...("model_context" in members ? { model_context: readText(members, "model_context") } : {}),
    ...("user_message" in members ? { user_message: readText(members, "user_message") } : {}),
  };
};

const parseObject = (bytes: Uint8Array): Members => {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    const value = parseJson(text);
    const duplicate = findRepeatedKey(text);
    if (duplicate !== undefined) throw new AnswerProblem("an object has a duplicate key");
    if (isObject(value)) return value;
  } catch (error) {
    if (error instanceof AnswerProblem) throw error;
    const problem = error instanceof JsonProblem ? error.message.replace(/\.$/, "") : "is not JSON";
    throw new AnswerProblem(`the response ${problem}`);
  }
  throw new AnswerProblem("the response is not an object");
};

const parsePermission = (event: HookEvent, value: unknown): Permission => {
  if (event !== "user_prompt_submit" && event !== "pre_tool_use") {
    throw new AnswerProblem("there is nothing to permit on this event");
  }
  if (!isObject(value)) throw new AnswerProblem("permission is not an object");
  requireOnly(value, ["decision", "reason", "input_override"], "permission");
  const reason = "reason" in value ? { reason: readText(value, "reason") } : {};
  const hasOverride = "input_override" in value;
  if (value.decision === "deny") {
    if (hasOverride) throw new AnswerProblem("a denial cannot have an input_override");
    return { decision: "deny", ...reason };
  }
  if (value.decision !== "allow") throw new AnswerProblem("the decision is neither allow nor deny");
  if (!hasOverride && event === "pre_tool_use") throw new AnswerProblem("allow needs input_override");
  return { decision: "allow", ...reason, ...(hasOverride ? { input_override: parseOverride(event, value) } : {}) };
};

const parseOverride = (event: HookEvent, { input_override: value }: Members): Readonly<Record<string, unknown>> => {
  if (!isObject(value)) throw new AnswerProblem("input_override is not an object");
  if (Buffer.byteLength(JSON.stringify(value)) > MAX_BYTES_BY_MEMBER.input_override) {
    throw new AnswerProblem("input_override is too long");
  }
  if (event === "pre_tool_use") return value;
  requireOnly(value, ["prompt"], "input_override");
  const { prompt } = value as { prompt?: unknown };
  if (typeof prompt !== "string" || prompt.trim() === "") throw new AnswerProblem("input_override has no prompt");
  return value;
};

const readText = (members: Members, name: "reason" | "model_context" | "user_message"): string => {
  const value = members[name];
  if (typeof value !== "string") throw new AnswerProblem(`${name} is not a string`);
  if (Buffer.byteLength(value) > MAX_BYTES_BY_MEMBER[name]) throw new AnswerProblem(`${name} is too long`);
  return value;
};

const requireOnly = (members: Members, allowed: readonly string[], what: string): void => {
  if (!Object.keys(members).every((name) => allowed.includes(name))) {
    throw new AnswerProblem(`${what} has an unknown member`);
  }
};

const isObject = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);
