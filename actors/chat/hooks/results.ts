// Asks the lifecycle hook about results that a client has brought, before anyone stores them. Outside of every mailbox. Throws
// `HookFailure`: then nothing is to be stored, and the same results may be sent again.
import type { ChatRow } from "#db/chats/chats.ts";
import type { Hooks } from "#src/hooks/hooks.ts";
import type { NewMessage, ToolResult } from "../machine/decision.ts";
import { effectRows } from "./effects.ts";
import { toHookMeta } from "./prompts.ts";
import { answeredData } from "./turn-hooks.ts";

/** The rows that come behind the results, in their order. */
export const admitResults = async (
  hooks: Hooks,
  chat: ChatRow,
  results: readonly ToolResult[],
): Promise<readonly NewMessage[]> => {
  const names = new Map(chat.pending_calls.map(({ tool_call_id, tool_name }) => [tool_call_id, tool_name]));
  const rows = await Promise.all(
    results.map(async ({ tool_call_id, output, is_error }) => {
      const call = { tool_call_id, tool_name: names.get(tool_call_id) ?? "" };
      const data = answeredData({ call, result: output ?? null, is_error });
      return effectRows(await hooks.ask({ event: "post_tool_use", meta: toHookMeta(chat), data }));
    }),
  );
  return rows.flat();
};
