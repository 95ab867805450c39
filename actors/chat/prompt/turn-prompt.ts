// What the model of a turn is given: blocks that are read anew for each call, and the history. Used by turn.ts, outside of the mailbox.
import type { Clock } from "#base/clock.ts";
import { findCustomPrompt } from "#db/chats/messages.ts";
import type { Store } from "#db/engine/store.ts";
import type { Hooks } from "#src/hooks/hooks.ts";
import type { PromptMessage } from "#src/llm/model.ts";
import type { StartedAttempt } from "../messages.ts";
import { untilAnswered } from "../until-answered.ts";
import { assemblePrompt, type BlockProvider } from "./prompt.ts";

type Deps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly hooks: Hooks;
  readonly blocks: readonly BlockProvider[];
};
type Of = Pick<StartedAttempt, "chat_key" | "about"> & { readonly chat_id: string };

/** Throws the reason of `signal`. */
export const promptOf = async (
  deps: Deps,
  { chat_key, about, chat_id }: Of,
  history: readonly PromptMessage[],
  signal: AbortSignal,
): Promise<readonly PromptMessage[]> => {
  const read = async () => {
    const of = { ...about, chat_id, chat_key, custom_prompt: await customPrompt(deps, chat_key) };
    return Promise.all(deps.blocks.map((block) => block(of)));
  };
  const blocks = await untilAnswered(deps.clock, signal, read);
  if (blocks === "stale") throw signal.reason;
  return assemblePrompt(
    blocks.flat(),
    // The row from which a cleared chat begins anew is empty.
    history.filter(({ content }) => content.length > 0).map(({ role, content }) => ({ role, content })),
  );
};

/** What the owner asks of all chats, as hooks have seen it; undefined while none is enforced: then as it is now. */
const customPrompt = async ({ store, hooks }: Deps, chat: number): Promise<string | undefined> =>
  hooks.mode === "enforce" ? ((await store.get(findCustomPrompt({ chat })))?.custom_prompt ?? "") : undefined;
