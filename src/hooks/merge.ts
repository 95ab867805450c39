// Combines the decisions of several hooks about one event: each hook receives the event with the changes of the earlier hooks. Pure.
import type { HookAnswer, HookRequest } from "./protocol.ts";

/** Returns the request with the input from a response. */
export const applyOverride = (request: HookRequest, { permission }: HookAnswer): HookRequest => {
  const override = permission?.decision === "allow" ? permission.input_override : undefined;
  if (!override) return request;
  if (request.event === "pre_tool_use") return { ...request, tool_input: JSON.stringify(override) };
  const text = String(override.prompt);
  const { parts } = request.data;
  const otherParts = Array.isArray(parts) ? parts.filter(({ type }) => type !== "text") : [];
  return { ...request, data: { ...request.data, prompt: text, parts: [{ type: "text", text }, ...otherParts] } };
};

/** Combines two responses. A later permission wins if it denies or changes something; texts are joined in order. */
export const mergeAnswers = (first: HookAnswer, second: HookAnswer): HookAnswer => {
  const permission =
    second.permission && hasChanges(second.permission) ? second.permission : (first.permission ?? second.permission);
  const denial = second.denial ?? first.denial;
  const model_context = joinTexts(first.model_context, second.model_context);
  const user_message = joinTexts(first.user_message, second.user_message);
  return {
    ...(permission ? { permission } : {}),
    ...(denial === undefined ? {} : { denial }),
    ...(model_context === undefined ? {} : { model_context }),
    ...(user_message === undefined ? {} : { user_message }),
  };
};

const hasChanges = (permission: NonNullable<HookAnswer["permission"]>): boolean =>
  permission.decision === "deny" || permission.input_override !== undefined;

const joinTexts = (...texts: readonly (string | undefined)[]): string | undefined => {
  const nonEmptyTexts = texts.filter((text) => text !== undefined && text !== "");
  return nonEmptyTexts.length === 0 ? undefined : nonEmptyTexts.join("\n\n");
};
