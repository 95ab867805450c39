// Groups chats for the list: by state, by workspace, or as archived. Pure.
import type { Chat } from "#schema/chats/chat.ts";
import { isWaitingForOwner } from "../../data/needs-owner.ts";

export type Grouping = "state" | "workspace" | "archived";
export type Group = { readonly name: string; readonly isPressing?: boolean; readonly chats: readonly Chat[] };
type ListedChat = Pick<Chat, "status" | "awaits" | "pin_order" | "children">;

const isWaiting = (chat: ListedChat): boolean => isWaitingForOwner(chat) || chat.children.some(isWaitingForOwner);
const isRunning = ({ status }: ListedChat): boolean => status === "running" || status === "interrupting";

/** Puts each chat in one group and omits empty groups. */
export const groupChats = (
  chats: readonly Chat[],
  grouping: Grouping,
  getWorkspaceName: (workspace: string) => string,
): readonly Group[] => {
  if (grouping === "archived") return [{ name: "Archived", chats }];
  if (grouping === "workspace") {
    const byWorkspace = Map.groupBy(chats, ({ workspace_id }) =>
      workspace_id ? getWorkspaceName(workspace_id) : "Without workspace",
    );
    return [...byWorkspace].map(([name, chats]) => ({ name, chats }));
  }
  const groups: Record<string, Chat[]> = { "Needs you": [], Pinned: [], Working: [], Done: [] };
  for (const chat of chats) {
    const name = isWaiting(chat) ? "Needs you" : chat.pin_order > 0 ? "Pinned" : isRunning(chat) ? "Working" : "Done";
    groups[name]?.push(chat);
  }
  groups.Pinned?.sort((a, b) => a.pin_order - b.pin_order);
  return Object.entries(groups)
    .filter(([, chats]) => chats.length > 0)
    .map(([name, chats]) => ({ name, chats, isPressing: name === "Needs you" }));
};
