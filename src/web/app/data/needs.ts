// Everything that needs the user's attention in all workspaces and chats: questions from chats, failed builds, approaching deadlines. One
// live list, most urgent first.
import { computed } from "@preact/signals";
import type { Chat } from "#schema/chats/chat.ts";
import type { WorkspaceSummary } from "#schema/workspaces/workspace-watch.ts";
import { now } from "../parts/time.tsx";
import { chats, type PendingRequest, pendingRequests } from "./chats.ts";
import { isWaitingForOwner } from "./needs-owner.ts";
import { me } from "./session.ts";
import { workspaces } from "./workspaces.ts";

export type Need =
  | { readonly kind: "chat"; readonly at: string; readonly chat: Chat; readonly asked: PendingRequest | undefined }
  | { readonly kind: "chat_failed"; readonly at: string; readonly chat: Chat }
  | { readonly kind: "failed"; readonly at: string; readonly workspace: WorkspaceSummary }
  | { readonly kind: "unhealthy"; readonly at: string; readonly workspace: WorkspaceSummary }
  | { readonly kind: "deadline"; readonly at: string; readonly workspace: WorkspaceSummary }
  | { readonly kind: "deleting"; readonly at: string; readonly workspace: WorkspaceSummary };

const DEADLINE_WARNING_MS = 30 * 60_000;
const DELETION_WARNING_MS = 7 * 24 * 60 * 60_000;

const listWorkspaceNeeds = (workspace: WorkspaceSummary, now: number): Need[] => {
  const { status, deadline, deleting_at, build_created_at, healthy } = workspace;
  if (status === "failed") return [{ kind: "failed", at: build_created_at, workspace }];
  if (status === "running" && deadline && Date.parse(deadline) - now < DEADLINE_WARNING_MS) {
    return [{ kind: "deadline", at: deadline, workspace }];
  }
  if (status === "running" && !healthy) return [{ kind: "unhealthy", at: build_created_at, workspace }];
  if (deleting_at && Date.parse(deleting_at) - now < DELETION_WARNING_MS)
    return [{ kind: "deleting", at: deleting_at, workspace }];
  return [];
};

const URGENCY_ORDER: readonly Need["kind"][] = ["chat", "deadline", "failed", "chat_failed", "unhealthy", "deleting"];

export const needs = computed((): readonly Need[] => {
  const myId = me.value?.id;
  const found: Need[] = [];
  for (const chat of chats.value.values()) {
    if (isWaitingForOwner(chat)) {
      found.push({ kind: "chat", at: chat.updated_at, chat, asked: pendingRequests.value.get(chat.id) });
    } else if (chat.status === "error") found.push({ kind: "chat_failed", at: chat.updated_at, chat });
  }
  for (const workspace of workspaces.value.values()) {
    if (workspace.owner_id === myId) found.push(...listWorkspaceNeeds(workspace, now.value));
  }
  return found.sort((a, b) => URGENCY_ORDER.indexOf(a.kind) - URGENCY_ORDER.indexOf(b.kind) || (a.at < b.at ? -1 : 1));
});
