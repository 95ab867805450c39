// The context of a node that answers reads while another one is the active one. It has the database and what is pure; all that lives in the
// memory of the active node (actors, topics, queues, connections into workspaces) and every write are not here: a request that touches
// one of them is passed on (src/base/network/read-here.ts). What is not named below is not here, so nothing new is answered here by mistake.
import type { Events } from "#actors/runtime/events.ts";
import { isForBuiltIn, type JobQueue } from "#actors/runtime/job-queue.ts";
import type { Tags } from "#actors/runtime/other-queues.ts";
import type { Clock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import type { Encryption } from "#base/encryption.ts";
import { afterReading, isReadHere, passOn } from "#base/network/read-here.ts";
import { NO_PARTS } from "#base/parts.ts";
import type { Topics } from "#base/topics.ts";
import { DatabaseBlobs } from "#db/pg/blobs.ts";
import type { ReadStore } from "#db/pg/read-store.ts";
import type { RefusedChanges } from "#src/api/audit/refused.ts";
import type { Sockets } from "#src/api/http/socket.ts";
import { Context } from "./context.ts";
import { type HeardKind, heardWith, hearing, isHeard } from "./nodes.ts";

/** Members that are the same on every node; it has no parts. */
const HERE: ReadonlySet<string> = new Set(["config", "clock", "store", "encryption", "requests", "addresses", "parts"]);

type Options = {
  readonly config: Config;
  readonly clock: Clock;
  readonly store: ReadStore;
  readonly encryption: Encryption;
};

export const openReads = ({ config, clock, store, encryption }: Options): Context => {
  const opened = { store, elsewhere: new DatabaseBlobs(store) };
  const context = new Context({ config, clock, parts: NO_PARTS }, opened, encryption, {
    metrics: undefined,
    telemetry: undefined,
  });
  const reads: Context = Object.create(context);
  const own: Readonly<Record<string, object>> = {
    jobs: queueHere(context.jobs),
    refused: NOTHING_REFUSED,
    topics: topicsHere(context.topics, heardWith(config)),
    // Of requests to upgrade only those are answered here that say so (src/server.ts).
    sockets: { upgrade: (...given) => afterReading(() => context.sockets.upgrade(...given)) } satisfies Pick<
      Sockets,
      "upgrade"
    >,
  };
  for (const [name, value] of Object.entries(context)) {
    if (HERE.has(name) || typeof value !== "object" || value === null || value instanceof URL) continue;
    Object.defineProperty(reads, name, { value: elsewhere(value, own[name]), enumerable: true });
  }
  // Where settings come from, and some of them, differ from node to node: those of the active one are shown.
  Object.defineProperty(reads, "sources", { value: elsewhere({}), enumerable: true });
  // Actors and pages ask the same one.
  Object.defineProperty(reads, "accessUrl", {
    get: () => context.accessUrl,
    set: (url: URL) => {
      context.accessUrl = url;
    },
  });
  return reads;
};

/** What is known of the queue of jobs without it: the worker that is built in takes the jobs that ask for nothing else. */
const queueHere = ({ worker }: JobQueue) => ({
  worker,
  workersVersion: 0,
  workersFor: (tags: Tags): readonly string[] => (isForBuiltIn(tags) ? [worker.id] : passOn()),
});

/** What the active node tells is heard here, too. */
const topicsHere = (topics: Topics<Events>, heard: readonly HeardKind[]): Pick<Topics<Events>, "subscribe"> => ({
  subscribe: (kind, id, listener) =>
    isReadHere() && !isHeard(heard, kind) ? passOn() : topics.subscribe(kind, id, listener),
});

/** From now on the streams of this node hear what the active ones tell, until the store is closed. */
export const hearActive = (store: ReadStore, ctx: Pick<Context, "topics" | "config">): void =>
  store.listen(hearing(ctx.topics, heardWith(ctx.config)));

/** Nothing is noted of reads that are refused; whatever else is leaves an entry that the active node writes. */
const NOTHING_REFUSED: Pick<RefusedChanges, "note"> = {
  note(_request, _status, attemptOf) {
    if (attemptOf()) passOn();
  },
};

/**
 * What is as it is while the routes are made, and passes on every request that touches it. `own` is there all the same.
 * Methods are called on the thing itself: its private members are of no proxy.
 */
const elsewhere = <T extends object>(thing: T, own: object = {}): T =>
  new Proxy(thing, {
    get(target, key) {
      if (Object.hasOwn(own, key)) return Reflect.get(own, key);
      if (isReadHere()) passOn();
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value === "function") return calledOn(target, value);
      return typeof value === "object" && value !== null ? elsewhere(value) : value;
    },
    has: (target, key) => (isReadHere() ? passOn() : Reflect.has(target, key)),
    ownKeys: (target) => (isReadHere() ? passOn() : Reflect.ownKeys(target)),
  });

const calledOn =
  (target: object, run: CallableFunction) =>
  (...given: unknown[]): unknown =>
    isReadHere() ? passOn() : Reflect.apply(run as never, target, given);
