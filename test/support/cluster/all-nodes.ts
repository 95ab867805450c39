// Combines the contexts of several active nodes: tests wait for events inside the server or count what it holds, whichever node has it.
import { type Events, HEARD_AMONG_ACTIVE } from "#actors/runtime/events.ts";
import { isMoved } from "#db/engine/store.ts";
import type { Context } from "#src/context/context.ts";

/**
 * How a member is combined: "each" calls all nodes and waits, "sum" adds up, "any" is true if any node's is, "owner" tries nodes until one
 * has the shard. All other members are the first node's.
 */
type How = "each" | "sum" | "any" | "owner";

type Member = (...args: unknown[]) => unknown;

const ACTORS: Readonly<Record<string, How>> = { size: "sum" };
const CHORE: Readonly<Record<string, How>> = { sweep: "each", idle: "each" };

const SHARED: Partial<Record<keyof Context, Readonly<Record<string, How>>>> = {
  agents: ACTORS,
  chats: ACTORS,
  dryRuns: ACTORS,
  diffs: { due: "owner", idle: "each" },
  versions: ACTORS,
  workspaces: ACTORS,
  streams: { size: "sum", endAll: "each" },
  sockets: { size: "sum" },
  requests: { size: "sum" },
  dialer: { size: "sum", isDaemon: "any" },
  scheduler: { tick: "each", settled: "each" },
  uses: { flush: "each", take: "any" },
  usage: { flush: "each", fold: "each", stop: "each" },
  titles: { idle: "each" },
  refused: { settled: "each" },
  connections: { flush: "each" },
  auditRetention: CHORE,
  chatUpkeep: CHORE,
  connectionUpkeep: CHORE,
};

/** Returns the first context with the node-specific members combined. */
export const allNodes = (contexts: readonly [Context, ...Context[]]): Context => {
  const [first] = contexts;
  const own = new Map<PropertyKey, unknown>([["topics", topicsOf(contexts)]]);
  for (const [name, how] of Object.entries(SHARED))
    own.set(name, together(contexts.map((one) => one[name as keyof Context]) as object[], how));
  return over(first, (name) => own.get(name));
};

const together = (all: readonly object[], how: Readonly<Record<string, How>>): object => {
  const [first] = all as [object];
  return over(first, (name) => {
    const kind = how[String(name)];
    if (kind === undefined) return undefined;
    const members = () => all.map((one) => Reflect.get(one, name, one) as unknown);
    if (kind === "sum") return (members() as number[]).reduce((a, b) => a + b);
    if (kind === "owner") return (...args: unknown[]) => ownersAnswer(all, name, args);
    const ask = (args: unknown[]) => all.map((one, i) => (members()[i] as Member).apply(one, args));
    if (kind === "any") return (...args: unknown[]) => ask(args).some(Boolean);
    return (...args: unknown[]) => Promise.all(ask(args));
  });
};

const ownersAnswer = async (
  [first, ...rest]: readonly object[],
  name: PropertyKey,
  args: unknown[],
): Promise<unknown> => {
  const one = first as object;
  try {
    return await (Reflect.get(one, name, one) as Member).apply(one, args);
  } catch (error) {
    if (!isMoved(error) || rest.length === 0) throw error;
    return await ownersAnswer(rest, name, args);
  }
};

/** Subscribes on each node to events that are not sent to other nodes. */
const topicsOf = (contexts: readonly [Context, ...Context[]]): Context["topics"] => {
  const [{ topics: first }] = contexts;
  const isTold = (kind: keyof Events) => HEARD_AMONG_ACTIVE.some((one) => one === kind);
  const own: Pick<Context["topics"], "subscribe" | "heard"> = {
    subscribe(kind, id, listener) {
      if (isTold(kind)) return first.subscribe(kind, id, listener);
      const stops = contexts.map(({ topics }) => topics.subscribe(kind, id, listener));
      return () => {
        for (const stop of stops) stop();
      };
    },
    heard: (kind, id) => contexts.some(({ topics }) => topics.heard(kind, id)),
  };
  return over(first, (name) => Reflect.get(own, name) as unknown);
};

/** Returns the object with some members replaced. */
const over = <T extends object>(object: T, other: (name: PropertyKey) => unknown): T =>
  new Proxy(object, {
    get(target, name) {
      const mine = other(name);
      if (mine !== undefined) return mine;
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === "function" ? (value as Member).bind(target) : value;
    },
  });
