// What follows a transition once it is on disk: followers hear of it, the owner's lists too, and turns begin or end.
import type { Topics } from "#base/topics.ts";
import type { Events, OwnerChatKind } from "../runtime/events.ts";
import type { Diffs } from "./background/pull-requests.ts";
import type { SearchUpkeep } from "./background/search-upkeep.ts";
import type { Titles } from "./background/titles.ts";
import type { ChatState } from "./machine/chat-state.ts";
import type { Change } from "./machine/decision.ts";
import { isVisible, pictureOf } from "./messages.ts";
import { nameOf } from "./names.ts";
import { aboutOf } from "./turn/offer.ts";
import type { Generations } from "./turn/runner.ts";

type Deps = {
  readonly topics: Topics<Events>;
  readonly generations: Generations;
  readonly index: SearchUpkeep;
  readonly titles: Titles;
  readonly diffs: Diffs;
};

export const announce = (
  { topics, generations, index, titles, diffs }: Deps,
  before: ChatState,
  change: Change<ChatState>,
): void => {
  const { state, inserted, deleted_from, effects } = change;
  const messages = inserted.filter(isVisible);
  if (messages.length > 0) index.note();
  topics.publish("chat", state.id, { ...pictureOf(state), messages, reset: deleted_from !== null });
  if (state.status !== before.status) {
    tellOwner(topics, state, "status_change");
    if (state.status === "requires_action") tellOwner(topics, state, "action_required");
  }
  if (messages.some(({ role }) => role === "user")) titles.promptAdded(state);
  const isOver = !isActive(state);
  if (isActive(before) && isOver) {
    titles.turnEnded(state, before.status === "interrupting");
    diffs.turnEnded(state);
  }
  for (const effect of effects) {
    if (effect.do === "generate") startTurn(generations, state);
    else generations.interrupt({ ...state, about: aboutOf(state) }, effect.history_version);
  }
};

const isActive = ({ status }: ChatState): boolean => status === "running" || status === "interrupting";

/** What lists show of the chat beside its status. */
export const tellChanges = (topics: Topics<Events>, before: ChatState, now: ChatState): void => {
  if (before.title !== now.title) tellOwner(topics, now, "title_change");
  if (before.last_turn_summary !== now.last_turn_summary) tellOwner(topics, now, "summary_change");
  if (before.summary !== now.summary) tellOwner(topics, now, "chat_summary_change");
};

export const tellOwner = (topics: Topics<Events>, state: ChatState, kind: OwnerChatKind): void => {
  const calls = kind === "action_required" ? { pending_calls: state.pending_calls } : {};
  topics.publish("owner_chats", state.owner_id, { kind, chat_id: state.id, ...calls });
};

/** Takes up what the chat owes; nothing when it goes on already. */
export const resume = (generations: Generations, state: ChatState): void => {
  const name = nameOf(state);
  if (name.startsWith("R")) startTurn(generations, state, true);
  if (name.startsWith("I")) generations.interrupt({ ...state, about: aboutOf(state) }, state.history_version);
};

export const startTurn = (
  generations: Generations,
  { id, parent_chat_id, history_version, retry_state }: ChatState,
  goesOn = false,
): void =>
  generations.start(id, parent_chat_id === null ? "root" : "child", history_version, { goesOn, retry: retry_state });
