// What happens on one node and is heard on the others: which kinds of events, and how they come to the topics of this node.

import type { ModelSettings } from "#actors/models/model-settings.ts";
import { type Events, HEARD_AMONG_ACTIVE, HEARD_EVERYWHERE } from "#actors/runtime/events.ts";
import type { Config } from "#base/config.ts";
import { ALL_PARTS } from "#base/parts.ts";
import type { Topics } from "#base/topics.ts";
import type { Word } from "#db/pg/told/notice.ts";
import type { Base } from "./base.ts";

export type HeardKind = (typeof HEARD_AMONG_ACTIVE)[number];

/** What is heard of other nodes with these settings. */
export const heardWith = ({ cluster_active }: Pick<Config, "cluster_active">): readonly HeardKind[] =>
  cluster_active === "every" ? HEARD_AMONG_ACTIVE : HEARD_EVERYWHERE;

export const isHeard = (heard: readonly HeardKind[], kind: string): kind is HeardKind | "missed" =>
  kind === "missed" || heard.some((one) => one === kind);

/** Takes the words of other nodes; none where some may have been missed. */
export const hearing =
  (topics: Topics<Events>, heard: readonly HeardKind[]) =>
  (words: readonly Word[] | undefined): void => {
    if (!words) topics.publish("missed", "", {});
    for (const { kind, id, event } of words ?? [])
      if (isHeard(heard, kind)) topics.publish(kind, id, event as never, true);
  };

/** Sends events of this node to the other nodes, but not events that came from them. */
export const tellOthers = ({ store, topics, parts }: Pick<Base, "store" | "topics" | "parts">): void => {
  if (!store.tell) return;
  for (const kind of parts === ALL_PARTS ? HEARD_EVERYWHERE : HEARD_AMONG_ACTIVE) {
    topics.subscribeAll(kind, (id, event, isFar) => {
      if (!isFar) store.tell?.(kind, id, event);
    });
  }
};

type Hearing = Pick<Base, "store" | "topics"> & { readonly modelSettings: Pick<ModelSettings, "loadSoon"> };

/** What happens on other nodes that are active is heard here from now on. */
export const hearOthers = ({ store, topics, modelSettings }: Hearing): void => {
  topics.subscribeAll("models_changed", (_, __, isFar) => isFar && modelSettings.loadSoon());
  topics.subscribeAll("missed", () => modelSettings.loadSoon());
  store.hear?.(hearing(topics, HEARD_AMONG_ACTIVE));
};
