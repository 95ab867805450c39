// The changes of a chat in its workspace's repositories, live.
import { signal } from "@preact/signals";
import type { GitMessage, GitRepository } from "#schema/agents/git-message.ts";
import { LiveSocket } from "../../data/live-socket.ts";

export type Repositories = ReadonlyMap<string, GitRepository>;

/** Merges changes by folder. Messages contain only changed repositories. */
export const mergeChanges = (current: Repositories, { repositories = [] }: GitMessage): Repositories => {
  const next = new Map(current);
  for (const one of repositories) {
    if (one.removed) next.delete(one.repo_root);
    else next.set(one.repo_root, one);
  }
  return next;
};

/** The repositories of the open chat. */
export const repositories = signal<Repositories>(new Map());
export const gitProblem = signal("");

/** Follows the chat's repositories. Returns a function that stops. */
export const followGit = (chat: string): (() => void) => {
  repositories.value = new Map();
  gitProblem.value = "";
  const socket = new LiveSocket({
    address: () => `/api/v2/chats/${chat}/stream/git`,
    onMessage: (text) => {
      const message = JSON.parse(text) as GitMessage;
      if (message.type === "error") gitProblem.value = message.message ?? "";
      else {
        gitProblem.value = "";
        repositories.value = mergeChanges(repositories.value, message);
      }
    },
  });
  return () => {
    socket.end();
    // Do not show this chat's changes in the next one.
    repositories.value = new Map();
  };
};
