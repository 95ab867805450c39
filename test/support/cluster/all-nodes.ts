// Combines the contexts of several active nodes, so that a test can wait for events inside the server or count what it holds, no matter
// which node is concerned.
import { EVENTS_FOR_ACTIVE_NODES, type Events } from "#actors/runtime/events.ts";
import { isMoved } from "#db/engine/store.ts";
import type { Context } from "#src/context/context.ts";

/**
 * How a member is combined: "each" calls all nodes and waits, "sum" adds the numbers, "any" is true if it is true on any node, "owner"
 * tries the nodes until one has the shard. All other members are those of the first node.
 */
type CombineMode = "each" | "sum" | "any" | "owner";

type Member = (...args: unknown[]) => unknown;

const ACTORS: Readonly<Record<string, CombineMode>> = { size: "sum" };
const SERVICES: Readonly<Record<string, CombineMode>> = { sweep: "each", whenIdle: "each" };

const SHARED: Partial<Record<keyof Context, Readonly<Record<string, CombineMode>>>> = {
  agents: ACTORS,
  chats: ACTORS,
  dryRuns: ACTORS,
  diffs: { onTimer: "owner", whenIdle: "each" },
  versions: ACTORS,
  workspaces: ACTORS,
  streams: { size: "sum", endAll: "each" },
  sockets: { size: "sum" },
  requests: { size: "sum" },
  dialer: { size: "sum", isDaemon: "any" },
  scheduler: { tick: "each", whenSettled: "each" },
  uses: { flush: "each", takeUsed: "any" },
  usage: { flush: "each", fold: "each", stop: "each" },
  titles: { whenIdle: "each" },
  refused: { flush: "each" },
  connections: { flush: "each" },
  services: SERVICES,
};

/** Returns the first context with combined members for what each node has of its own. */
export const combineNodes = (contexts: readonly [Context, ...Context[]]): Context => {
  const [firstContext] = contexts;
  const overrides = new Map<PropertyKey, unknown>([["topics", combineTopics(contexts)]]);
  for (const [name, modes] of Object.entries(SHARED))
    overrides.set(name, combineMembers(contexts.map((context) => context[name as keyof Context]) as object[], modes));
  return overrideMembers(firstContext, (name) => overrides.get(name));
};

const combineMembers = (objects: readonly object[], modes: Readonly<Record<string, CombineMode>>): object => {
  const [firstObject] = objects as [object];
  return overrideMembers(firstObject, (name) => {
    const mode = modes[String(name)];
    if (mode === undefined) return undefined;
    const members = () => objects.map((object) => Reflect.get(object, name, object) as unknown);
    if (mode === "sum") return (members() as number[]).reduce((a, b) => a + b);
    if (mode === "owner") return (...args: unknown[]) => callOwner(objects, name, args);
    const callAll = (args: unknown[]) => objects.map((object, i) => (members()[i] as Member).apply(object, args));
    if (mode === "any") return (...args: unknown[]) => callAll(args).some(Boolean);
    return (...args: unknown[]) => Promise.all(callAll(args));
  });
};

const callOwner = async (
  [firstObject, ...others]: readonly object[],
  name: PropertyKey,
  args: unknown[],
): Promise<unknown> => {
  const object = firstObject as object;
  try {
    return await (Reflect.get(object, name, object) as Member).apply(object, args);
  } catch (error) {
    if (!isMoved(error) || others.length === 0) throw error;
    return await callOwner(others, name, args);
  }
};

/** Subscribes on each node to events that are not sent to other nodes. */
const combineTopics = (contexts: readonly [Context, ...Context[]]): Context["topics"] => {
  const [{ topics: firstTopics }] = contexts;
  const isForwarded = (kind: keyof Events) => EVENTS_FOR_ACTIVE_NODES.some((event) => event === kind);
  const overrides: Pick<Context["topics"], "subscribe" | "hasListeners"> = {
    subscribe(kind, id, listener) {
      if (isForwarded(kind)) return firstTopics.subscribe(kind, id, listener);
      const stops = contexts.map(({ topics }) => topics.subscribe(kind, id, listener));
      return () => {
        for (const stop of stops) stop();
      };
    },
    hasListeners: (kind, id) => contexts.some(({ topics }) => topics.hasListeners(kind, id)),
  };
  return overrideMembers(firstTopics, (name) => Reflect.get(overrides, name) as unknown);
};

/** Returns the object with some members replaced. */
const overrideMembers = <T extends object>(object: T, getOverride: (name: PropertyKey) => unknown): T =>
  new Proxy(object, {
    get(target, name) {
      const override = getOverride(name);
      if (override !== undefined) return override;
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === "function" ? (value as Member).bind(target) : value;
    },
  });
