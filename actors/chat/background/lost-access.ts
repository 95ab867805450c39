// Interrupts a chat's turn when its owner may not continue it or loses access to the workspace, and ends what the turn started in the
// workspace, including its coding agent. Only chats with something running on this node are checked: the next step of any other turn is
// refused, and
// the workspace rejects its next call (rule CH-51).
import { isUuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import type { Topics } from "#base/topics.ts";
import { type ChatAccessRow, findChatAccessRow } from "#db/chats/chats.ts";
import type { Store } from "#db/engine/store.ts";
import type { ToolServices, ToolServicesFor } from "#src/tools/services.ts";
import type { Directory } from "../../runtime/directory.ts";
import type { Events } from "../../runtime/events.ts";
import type { ChatActor } from "../actor.ts";
import type { FindTurnRefusal } from "../deps.ts";
import type { Generations } from "../turn/runner.ts";

type Deps = {
  readonly store: Store;
  readonly topics: Topics<Events>;
  readonly toolServices: (scope: ToolServicesFor) => Pick<ToolServices, "canUseWorkspace">;
  readonly findTurnRefusal: FindTurnRefusal;
  readonly generations: Pick<Generations, "endAgent" | "hasActiveTurn" | "listActiveChats">;
  readonly chats: Pick<Directory<ChatActor>, "ask">;
};

/** Subscribes to access changes and ends the work of affected chats. */
export const endWorkOnLostAccess = (deps: Deps): void => {
  const check = (changed: string | null): void => {
    for (const chat_id of deps.generations.listActiveChats()) {
      void endWorkIfAccessLost(deps, chat_id, changed).catch((error) => {
        log("chats").error("cannot end the work of chat {chat_id}: {error}", { chat_id, error });
      });
    }
  };
  // The event names a workspace or an organization, or a person whose roles, groups or memberships have changed.
  deps.topics.subscribeAll("access_changed", check);
  // An event with a user's ID means that all keys of the user were revoked: the account was suspended or deleted, or its password was
  // reset. An event about a single key is ignored.
  deps.topics.subscribeAll("key_gone", (id) => {
    if (isUuid(id)) check(id);
  });
  deps.topics.subscribeAll("missed", () => check(null));
};

/** `changed`: the ID that the event names; null when any chat may be affected. */
const endWorkIfAccessLost = async (deps: Deps, chat_id: string, changed: string | null): Promise<void> => {
  const { store, findTurnRefusal, generations, chats } = deps;
  const chat = await store.get(findChatAccessRow({ id: chat_id }));
  if (!chat) return;
  const { owner_id, organization_id, workspace_id } = chat;
  if (changed !== null && ![owner_id, organization_id, workspace_id].includes(changed)) return;
  if ((await findTurnRefusal(chat_id)) === undefined && (await canUseWorkspaceOf(deps, chat))) return;
  // A turn that has ended by now rejects the interrupt.
  if (generations.hasActiveTurn(chat_id)) await chats.ask(chat_id, "interrupt", {}).catch(() => {});
  generations.endAgent(chat_id);
};

/** Returns true for a chat without a workspace. */
const canUseWorkspaceOf = async (
  { toolServices }: Deps,
  { id: chat_id, owner_id, organization_id, workspace_id }: ChatAccessRow,
): Promise<boolean> =>
  workspace_id === null ||
  toolServices({ chat_id, owner_id, organization_id, workspace_id, run_id: chat_id }).canUseWorkspace();
