// A chat that is being made: what is written for it and what follows. Used by the actor of the chat itself, and by that of a root chat for
// its sub-chats, since whether one may still be made is the root's to say (rule SB-3).

import { insertChat } from "#db/chats/chats.ts";
import { pinContextOnce } from "#db/chats/context.ts";
import { keepAnswer } from "#db/chats/requests.ts";
import { indexTitle } from "#db/chats/search.ts";
import type { Statement } from "#db/engine/sql.ts";
import { guardUser, takeSeat } from "#db/users/users.ts";
import { startTurn, tellOwner } from "../announce.ts";
import { attachWrites } from "../attach.ts";
import { chatMade } from "../audit.ts";
import type { ChatDeps } from "../deps.ts";
import type { ChatState } from "../machine/chat-state.ts";
import type { Message } from "../machine/decision.ts";
import type { CreateChat } from "../messages.ts";
import { toCreation } from "./create.ts";
import { messageWrites } from "./writes.ts";

export type Created = {
  readonly state: ChatState;
  readonly inserted: readonly Message[];
  readonly writes: readonly Statement[];
  /** Its owner hears of it and its turn begins. */
  readonly after: () => void;
};

export const created = async (parts: ChatDeps, args: CreateChat): Promise<Created> => {
  const { store, clock, topics, effects } = parts;
  const key = await store.reserve("chats", 1);
  const first_id = await store.reserve("messages", args.messages.length);
  const { state, inserted } = toCreation(args, { key, first_id, now: clock.now() });
  const { queue: _, pending_calls, ...row } = state;
  return {
    state,
    inserted,
    writes: [
      guardUser({ id: state.owner_id }),
      insertChat({ ...row, pending_calls: [...pending_calls] }),
      ...(state.workspace_id === null ? [] : [pinContextOnce(key, state.workspace_id, clock.now())]),
      ...messageWrites(key, inserted),
      indexTitle(key, state.title),
      ...(await takeSeat(store, state.owner_id)),
      chatMade(state, clock.now()),
      ...(args.request ? keepAnswer(key, args.request, { answer: null, now: clock.now() }) : []),
      ...args.messages.flatMap(({ content }) => attachWrites(key, content, clock.now())),
    ],
    after: () => {
      effects.wordsAdded();
      tellOwner(topics, state, "created");
      startTurn(effects, state);
      effects.promptAdded(state);
    },
  };
};
