// Interrupts a chat's turn when its owner loses access to the workspace, and ends what the turn started there, including its coding agent.
// Only chats with something running on this node are checked; the workspace rejects the next call of any other chat.
import { log } from "#base/log.ts";
import type { Topics } from "#base/topics.ts";
import { findChatPlace } from "#db/chats/chats.ts";
import type { Store } from "#db/engine/store.ts";
import type { ToolServices, ToolServicesFor } from "#src/tools/services.ts";
import type { Directory } from "../../runtime/directory.ts";
import type { Events } from "../../runtime/events.ts";
import type { ChatActor } from "../actor.ts";
import type { Generations } from "../turn/runner.ts";

type Deps = {
  readonly store: Store;
  readonly topics: Topics<Events>;
  readonly toolServices: (of: ToolServicesFor) => Pick<ToolServices, "canUseWorkspace">;
  readonly generations: Pick<Generations, "active" | "hasTurn" | "endAgent">;
  readonly chats: Pick<Directory<ChatActor>, "ask">;
};

/** Subscribes to access changes and ends the work of affected chats. */
export const endWorkOnLostAccess = (deps: Deps): void => {
  // The event names a workspace, or a person whose roles, groups or memberships have changed.
  deps.topics.subscribeAll("access_changed", (id) => {
    for (const chat_id of deps.generations.active()) {
      void endWorkIfAccessLost(deps, chat_id, id).catch((error) => {
        log("chats").error("could not end the work of chat {chat_id}: {error}", { chat_id, error });
      });
    }
  });
};

const endWorkIfAccessLost = async (
  { store, toolServices, generations, chats }: Deps,
  chat_id: string,
  changed: string,
): Promise<void> => {
  const place = await store.get(findChatPlace({ id: chat_id }));
  if (!place || place.workspace_id === null) return;
  if (changed !== place.workspace_id && changed !== place.owner_id) return;
  const { owner_id, organization_id, workspace_id } = place;
  const services = toolServices({ chat_id, owner_id, organization_id, workspace_id, run_id: chat_id });
  if (await services.canUseWorkspace()) return;
  // A turn that has ended by now rejects the interrupt.
  if (generations.hasTurn(chat_id)) await chats.ask(chat_id, "interrupt", {}).catch(() => {});
  generations.endAgent(chat_id);
};
