// The memory of a prompt: of the history and its attachments, taken before they are read (rule CH-54).
import { sumChatFileBytes } from "#db/chats/files.ts";
import { estimateEncoded } from "#src/llm/attachments.ts";
import type { RequestMemory } from "#src/llm/model.ts";
import type { TurnDeps } from "../turn/deps.ts";
import { retryUntilAnswered } from "../until-answered.ts";
import type { TurnHistory } from "./prompt-history.ts";

type Prompt = {
  readonly chat_key: number;
  readonly owner_id: string;
  readonly history: Pick<TurnHistory, "weigh">;
  /** Whether the attachments are read as well. */
  readonly hasFiles: boolean;
  readonly signal: AbortSignal;
};

/** Waits for the memory. Returns undefined once the signal has aborted. */
export const takeHistoryMemory = async (
  { clock, memory, store }: Pick<TurnDeps, "clock" | "memory" | "store">,
  { chat_key, owner_id, history, hasFiles, signal }: Prompt,
): Promise<RequestMemory | undefined> => {
  const weighed = await retryUntilAnswered(clock, signal, () =>
    Promise.all([history.weigh(), hasFiles ? store.get(sumChatFileBytes({ chat: chat_key })) : undefined]),
  );
  if (weighed === "stale") return undefined;
  const [text_bytes, files] = weighed;
  try {
    const hold = await memory.take(owner_id, text_bytes + estimateEncoded(files?.bytes ?? 0), signal);
    return { hold, text_bytes };
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  }
};
