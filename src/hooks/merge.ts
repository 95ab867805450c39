// Combines the decisions of several hooks about one event: each receives the event as the earlier hooks have changed it. Pure.
import type { HookAnswer, HookRequest } from "./protocol.ts";

/** Returns the request with the input from a response. */
export const applyOverride = (request: HookRequest, { permission }: HookAnswer): HookRequest => {
  const override = permission?.decision === "allow" ? permission.input_override : undefined;
  if (!override) return request;
  if (request.event === "pre_tool_use") return { ...request, tool_input: JSON.stringify(override) };
  const text = String(override.prompt);
  const { parts } = request.data;
  const others = Array.isArray(parts) ? parts.filter(({ type }) => type !== "text") : [];
  return { ...request, data: { ...request.data, prompt: text, parts: [{ type: "text", text }, ...others] } };
};

/** Combines two responses. The later permission wins if there is one; texts are joined in order. */
export const mergeAnswers = (first: HookAnswer, then: HookAnswer): HookAnswer => {
  const permission =
    then.permission && hasChanges(then.permission) ? then.permission : (first.permission ?? then.permission);
  const denial = then.denial ?? first.denial;
  const model_context = joinTexts(first.model_context, then.model_context);
  const user_message = joinTexts(first.user_message, then.user_message);
  return {
    ...(permission ? { permission } : {}),
    ...(denial === undefined ? {} : { denial }),
    ...(model_context === undefined ? {} : { model_context }),
    ...(user_message === undefined ? {} : { user_message }),
  };
};

const hasChanges = (permission: NonNullable<HookAnswer["permission"]>): boolean =>
  permission.decision === "deny" || permission.input_override !== undefined;

const joinTexts = (...words: readonly (string | undefined)[]): string | undefined => {
  const message = words.filter((one) => one !== undefined && one !== "");
  return message.length === 0 ? undefined : message.join("\n\n");
};
