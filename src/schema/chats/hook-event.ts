// The events of lifecycle hooks (docs/hooks.md).

export const HOOK_EVENTS = [
  "session_start",
  "user_prompt_submit",
  "pre_tool_use",
  "post_tool_use",
  "pre_compact",
  "post_compact",
  "stop",
] as const;
export type HookEvent = (typeof HOOK_EVENTS)[number];
