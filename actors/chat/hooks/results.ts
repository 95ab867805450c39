// Asks the lifecycle hook about a client's results before they are stored. Runs outside of every mailbox. After a `HookFailure`, the results
// must not be stored, and the client can send them again.
import { mapConcurrently } from "#base/concurrency-limit.ts";
import type { ChatRow } from "#db/chats/chats.ts";
import type { Hooks } from "#src/hooks/hooks.ts";
import type { NewMessage, ToolResult } from "../machine/decision.ts";
import { toEffectRows } from "./effects.ts";
import { toHookMeta } from "./prompts.ts";
import { MAX_CONCURRENT_RESULTS, toAnswerData } from "./turn-hooks.ts";

/** Returns the rows that hooks add after the results, in the order of the results. */
export const admitResults = async (
  hooks: Hooks,
  chat: ChatRow,
  results: readonly ToolResult[],
): Promise<readonly NewMessage[]> => {
  const names = new Map(chat.pending_calls.map(({ tool_call_id, tool_name }) => [tool_call_id, tool_name]));
  const rows = await mapConcurrently(MAX_CONCURRENT_RESULTS, results, async ({ tool_call_id, output, is_error }) => {
    const call = { tool_call_id, tool_name: names.get(tool_call_id) ?? "" };
    const data = toAnswerData({ call, result: output ?? null, is_error });
    return toEffectRows(await hooks.decide({ event: "post_tool_use", meta: toHookMeta(chat), data }));
  });
  return rows.flat();
};
