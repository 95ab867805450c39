// Announces a transition after its commit: notifies followers and the owner's chat lists, and starts or stops turns.
import type { Topics } from "#base/topics.ts";
import type { Events, OwnerChatKind } from "../runtime/events.ts";
import type { ChatEffects } from "./effects.ts";
import type { ChatState } from "./machine/chat-state.ts";
import type { Change } from "./machine/decision.ts";
import { isVisible, toPicture } from "./messages.ts";
import { isActive, toStateName } from "./names.ts";
import { toPromptScope } from "./turn/offer.ts";

type Deps = { readonly topics: Topics<Events>; readonly effects: ChatEffects };

export const announce = ({ topics, effects }: Deps, before: ChatState, change: Change<ChatState>): void => {
  const { state, inserted, deleted_from } = change;
  const messages = inserted.filter(isVisible);
  if (messages.length > 0) effects.searchTextAdded();
  topics.publish("chat", state.id, { ...toPicture(state), messages, reset: deleted_from !== null });
  if (state.status !== before.status) {
    notifyOwner(topics, state, "status_change");
    if (state.status === "requires_action") notifyOwner(topics, state, "action_required");
  }
  if (messages.some(({ role }) => role === "user")) effects.promptAdded(state);
  // A turn that only compacts the history adds nothing to title, summarize or check for pull requests.
  const hasTurnEnded = isActive(before) && !isActive(state) && before.compaction === null;
  if (hasTurnEnded) effects.turnEnded(state, before.status === "interrupting");
  for (const effect of change.effects) {
    if (effect.do === "generate") startTurn(effects, state);
    else stopTurn(effects, state, effect.history_version);
  }
};

/**
 * Announces the state that was read after a commit could not be confirmed, so that every reader reloads the chat. Does not start a turn,
 * because loading the chat has already done so.
 */
export const announceReload = ({ topics, effects }: Deps, before: ChatState | undefined, found: ChatState): void => {
  effects.searchTextAdded();
  topics.publish("chat", found.id, { ...toPicture(found), messages: [], reset: true });
  notifyOwner(topics, found, before ? "status_change" : "created");
  if (before) announceListChanges(topics, before, found);
  if (found.status === "requires_action") notifyOwner(topics, found, "action_required");
  announceAccessChange(topics, found.id);
  for (const kind of ["notified", "inbox"] as const) topics.publish(kind, found.owner_id, {});
};

/** Announces changes of fields that chat lists show, other than the status. */
export const announceListChanges = (topics: Topics<Events>, before: ChatState, now: ChatState): void => {
  if (before.title !== now.title) notifyOwner(topics, now, "title_change");
  if (before.last_turn_summary !== now.last_turn_summary) notifyOwner(topics, now, "summary_change");
  if (before.permissions !== now.permissions || before.plan_mode !== now.plan_mode) {
    notifyOwner(topics, now, "status_change");
  }
  if (before.summary !== now.summary) notifyOwner(topics, now, "chat_summary_change");
};

export const notifyOwner = (topics: Topics<Events>, state: ChatState, kind: OwnerChatKind): void => {
  const calls = kind === "action_required" ? { pending_calls: state.pending_calls } : {};
  topics.publish("owner_chats", state.owner_id, { kind, chat_id: state.id, ...calls });
};

/** Announces that the people who may read the chat have changed. */
export const announceAccessChange = (topics: Topics<Events>, chat_id: string): void =>
  topics.publish("access_changed", chat_id, {});

/** Resumes the chat's pending work. Does nothing if it is already running. */
export const resume = (effects: ChatEffects, state: ChatState): void => {
  const name = toStateName(state);
  if (name.startsWith("R")) startTurn(effects, state, true);
  if (name.startsWith("I")) stopTurn(effects, state, state.history_version);
};

export const startTurn = (effects: ChatEffects, state: ChatState, isResumed = false): void =>
  effects.startTurn(state, { isResumed, retry: state.retry_state });

const stopTurn = (effects: ChatEffects, state: ChatState, history_version: number): void =>
  effects.stopTurn({ ...state, scope: toPromptScope(state) }, history_version);
