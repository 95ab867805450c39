// Dependencies of the chat actor.
import type { Clock } from "#base/clock.ts";
import type { Topics } from "#base/topics.ts";
import type { Store } from "#db/engine/store.ts";
import type { LanguageModels } from "#src/llm/model.ts";
import type { MessageSender } from "../runtime/directory.ts";
import type { Events } from "../runtime/events.ts";
import type { ChatEffects } from "./effects.ts";
import type { FamilyMessages } from "./messages.ts";

/** Returns why a turn must not continue. `prompted_at`: when the turn was requested; by default, the time of the person's last message. */
export type FindTurnRefusal = (chat_id: string, prompted_at?: number) => Promise<string | undefined>;

export type ChatDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly topics: Topics<Events>;
  readonly models: LanguageModels;
  readonly effects: ChatEffects;
  readonly findTurnRefusal: FindTurnRefusal;
  /** How long to wait for a person's approval. */
  readonly approval_ms: number;
  /** Sends messages to the sub-chats that change with their root. */
  readonly chats: () => MessageSender<FamilyMessages>;
};
