// Prepares a new chat: the statements that create it, and the effects after the commit. Used by the chat's own actor and by a root chat's
// actor for its sub-chats, because the root decides whether a sub-chat may still be created (rule SB-3).

import { insertChat } from "#db/chats/chats.ts";
import { pinContextOnce } from "#db/chats/context.ts";
import { insertAnswer } from "#db/chats/requests.ts";
import { indexTitle } from "#db/chats/search.ts";
import type { Statement } from "#db/engine/sql.ts";
import { assignSeat, guardUser } from "#db/users/users.ts";
import { notifyOwner, startTurn } from "../announce.ts";
import { buildAttachWrites } from "../attach.ts";
import { auditChatCreated } from "../audit.ts";
import type { ChatDeps } from "../deps.ts";
import type { ChatState } from "../machine/chat-state.ts";
import type { Message } from "../machine/decision.ts";
import type { CreateChat } from "../messages.ts";
import { toCreation } from "./create.ts";
import { toMessageWrites } from "./writes.ts";

export type CreatedChat = {
  readonly state: ChatState;
  readonly inserted: readonly Message[];
  readonly writes: readonly Statement[];
  /** Notifies the owner and begins the turn. */
  readonly after: () => void;
};

export const buildChat = async (deps: ChatDeps, args: CreateChat): Promise<CreatedChat> => {
  const { store, clock, topics, effects } = deps;
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
      ...toMessageWrites(key, inserted),
      indexTitle(key, state.title),
      ...(await assignSeat(store, state.owner_id)),
      auditChatCreated(state, clock.now()),
      ...(args.request ? insertAnswer(key, args.request, { answer: null, now: clock.now() }) : []),
      ...args.messages.flatMap(({ content }) => buildAttachWrites(key, content, clock.now())),
    ],
    after: () => {
      effects.searchTextAdded();
      notifyOwner(topics, state, "created");
      startTurn(effects, state);
      effects.promptAdded(state);
    },
  };
};
