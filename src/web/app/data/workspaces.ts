// All workspaces that the user can see, live: one snapshot, then changes, resumed after a disconnect. One stream for the whole app.
import { computed, effect, signal } from "@preact/signals";
import type { WorkspaceSummary, WorkspacesEvent } from "#schema/workspaces/workspace-watch.ts";
import { takeFirstMessage } from "../../browser/early.ts";
import { firstPaint } from "./first-paint.ts";
import { LiveSocket } from "./live-socket.ts";

/** By ID. Each change creates a new map; unchanged rows are the same objects. */
export const workspaces = signal<ReadonlyMap<string, WorkspaceSummary>>(new Map());
/** False until the first snapshot is complete. */
export const workspacesLoaded = signal(false);

let resolveFirstWorkspaces = (): void => {};
/** Resolves when the first workspaces are loaded, or the list is known to be empty. */
export const firstWorkspaces = new Promise<void>((resolve) => {
  resolveFirstWorkspaces = resolve;
});

const PATH = "/workspaces/watch";
let lastId = "";
/** A snapshot that is still being received. */
let incoming: Map<string, WorkspaceSummary> | undefined;
let _socket: LiveSocket | undefined;
let wasOpen = false;

const handleMessage = (text: string): void => {
  const event = JSON.parse(text) as WorkspacesEvent | { type: "ping" };
  applyEvent(event);
  if (event.type === "snapshot" || event.type === "changes") resolveFirstWorkspaces();
};

const applyEvent = (event: WorkspacesEvent | { type: "ping" }): void => {
  if (event.type === "access") notifyAccess();
  else if (event.type === "templates") notifyTemplates(event.changed);
  else if (event.type === "snapshot") {
    incoming ??= new Map();
    for (const workspace of event.workspaces) incoming.set(workspace.id, workspace);
    // The first rows are shown while the rest arrives. Later snapshots are applied when complete, since each part would be sorted and drawn
    // again.
    const isFirst = workspaces.value.size === 0;
    if (!event.more || isFirst) workspaces.value = new Map(incoming);
    if (event.more) return;
    incoming = undefined;
    lastId = event.id;
    workspacesLoaded.value = true;
  } else if (event.type === "changes") {
    const next = new Map(workspaces.value);
    for (const workspace of event.changed) next.set(workspace.id, workspace);
    for (const id of event.removed) next.delete(id);
    workspaces.value = next;
    if (event.id !== "") lastId = event.id;
    workspacesLoaded.value = true;
  }
};

const accessListeners = new Set<() => void>();

/** Calls back when the user's roles or memberships have changed, or may have changed during a disconnect or before the page loaded. */
export const onAccessChange = (act: () => void): (() => void) => {
  accessListeners.add(act);
  return () => accessListeners.delete(act);
};

const notifyAccess = (): void => {
  for (const act of accessListeners) act();
};

const templateListeners = new Set<(id: string | undefined) => void>();

/**
 * Calls back when a template or one of its versions was changed or deleted; without an ID if that may have happened during a disconnect.
 */
export const onTemplateChange = (act: (id: string | undefined) => void): (() => void) => {
  templateListeners.add(act);
  return () => templateListeners.delete(act);
};

const notifyTemplates = (ids: readonly (string | undefined)[]): void => {
  for (const id of ids) for (const act of templateListeners) act(id);
};

/** Starts following the workspaces. Called once for the app. */
export const followWorkspaces = (): void => {
  if (_socket) return;
  const first = takeFirstMessage(PATH);
  if (first !== undefined) handleMessage(first);
  _socket = new LiveSocket({
    after: first === undefined ? undefined : firstPaint,
    address: () => {
      incoming = undefined;
      return `/api/v2${PATH}${lastId === "" ? "" : `?after_id=${encodeURIComponent(lastId)}`}`;
    },
    onMessage: handleMessage,
    onOpen: () => {
      if (wasOpen) notifyTemplates([undefined]);
      // After a reconnect with an event ID, the server itself sends the changes of access since that event.
      if (wasOpen && lastId === "") notifyAccess();
      wasOpen = true;
    },
    pings: true,
  });
};

/**
 * Resolves when `isDone` returns true for the workspace in the list, or with `undefined` when it was deleted after having been listed.
 * Rejects with what `isDone` throws.
 */
export const waitForWorkspace = (
  id: string,
  isDone: (workspace: WorkspaceSummary | undefined) => boolean,
): Promise<void> =>
  new Promise((resolve, reject) => {
    let wasListed = false;
    let stop = (): void => {};
    let isSettled = false;
    const finish = (settle: () => void): void => {
      isSettled = true;
      settle();
      stop();
    };
    stop = effect(() => {
      const workspace = workspaces.value.get(id);
      wasListed ||= workspace !== undefined;
      if (isSettled || !wasListed) return;
      try {
        if (isDone(workspace)) finish(resolve);
      } catch (error) {
        finish(() => reject(error));
      }
    });
    if (isSettled) stop();
  });

const compareByUse = (a: WorkspaceSummary, b: WorkspaceSummary): number =>
  a.last_used_at < b.last_used_at ? 1 : a.last_used_at > b.last_used_at ? -1 : a.name < b.name ? -1 : 1;

/** Favorites first, then by last use. */
export const workspacesByUse = computed(() =>
  [...workspaces.value.values()].sort((a, b) => Number(b.favorite) - Number(a.favorite) || compareByUse(a, b)),
);
