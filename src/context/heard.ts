// What happens on one node and is heard on the others: which kinds of events, and how they come to the topics of this node.
import { type Events, HEARD_AMONG_ACTIVE, HEARD_EVERYWHERE } from "#actors/runtime/events.ts";
import type { Config } from "#base/config.ts";
import type { Topics } from "#base/topics.ts";
import type { Word } from "#db/pg/told/notice.ts";

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
