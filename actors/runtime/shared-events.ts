// Events shared between nodes: which kinds, and how they reach the topics of this node. Unused on a single server.
import type { Config } from "#base/config.ts";
import { ALL_SHARDS, type Shards } from "#base/shards.ts";
import type { Topics } from "#base/topics.ts";
import type { Store } from "#db/engine/store.ts";
import type { BroadcastEvent } from "#db/pg/notices/notice.ts";
import type { ModelSettings } from "../models/model-settings.ts";
import { EVENTS_FOR_ACTIVE_NODES, EVENTS_FOR_ALL_NODES, type Events } from "./events.ts";

type EventDeps = { readonly store: Store; readonly topics: Topics<Events> };

export type SharedEventKind = (typeof EVENTS_FOR_ACTIVE_NODES)[number];

/** Returns the kinds of events that are received from other nodes with these settings. */
export const listSharedEventKinds = ({ cluster_active }: Pick<Config, "cluster_active">): readonly SharedEventKind[] =>
  cluster_active === "every" ? EVENTS_FOR_ACTIVE_NODES : EVENTS_FOR_ALL_NODES;

export const isSharedEvent = (kinds: readonly SharedEventKind[], kind: string): kind is SharedEventKind | "missed" =>
  kind === "missed" || kinds.some((one) => one === kind);

/** Publishes events of other nodes; without events, publishes that some may have been missed. */
export const createEventReceiver =
  (topics: Topics<Events>, kinds: readonly SharedEventKind[]) =>
  (events: readonly BroadcastEvent[] | undefined): void => {
    if (!events) topics.publish("missed", "", {});
    for (const { kind, id, event } of events ?? [])
      if (isSharedEvent(kinds, kind)) topics.publish(kind, id, event as never, true);
  };

/** Sends events of this node to the other nodes, but not events that came from another node. */
export const broadcastEvents = ({ store, topics, shards }: EventDeps & { readonly shards: Shards }): void => {
  if (!store.broadcast) return;
  for (const kind of shards === ALL_SHARDS ? EVENTS_FOR_ALL_NODES : EVENTS_FOR_ACTIVE_NODES) {
    topics.subscribeAll(kind, (id, event, isRemote) => {
      if (!isRemote) store.broadcast?.(kind, id, event);
    });
  }
};

type ReceiverDeps = EventDeps & { readonly modelSettings: Pick<ModelSettings, "loadSoon"> };

/** Starts publishing events of other active nodes on this one. */
export const receiveFromOtherNodes = ({ store, topics, modelSettings }: ReceiverDeps): void => {
  topics.subscribeAll("models_changed", (_, __, isRemote) => isRemote && modelSettings.loadSoon());
  topics.subscribeAll("missed", () => modelSettings.loadSoon());
  store.onBroadcast?.(createEventReceiver(topics, EVENTS_FOR_ACTIVE_NODES));
};
