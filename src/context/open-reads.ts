// The context of a node that serves reads while another node is active. It has the database and pure code. Everything in the active node's
// memory (actors, topics, queues, connections into workspaces) and all writes are missing: a request that uses them is forwarded
// (src/base/network/local-reads.ts). Members must be listed below to be available, so nothing new is served here by mistake.
import type { Events } from "#actors/runtime/events.ts";
import type { JobQueue } from "#actors/runtime/job-queue.ts";
import type { Tags } from "#actors/runtime/remote-queues.ts";
import {
  createEventReceiver,
  isSharedEvent,
  listSharedEventKinds,
  type SharedEventKind,
} from "#actors/runtime/shared-events.ts";
import type { Clock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import type { Encryption } from "#base/encryption.ts";
import { isLocalRead, leaveLocalRead, passToActiveNode } from "#base/network/local-reads.ts";
import { NO_SHARDS } from "#base/shards.ts";
import type { Topics } from "#base/topics.ts";
import { DatabaseBlobs } from "#db/pg/blobs.ts";
import type { ReadStore } from "#db/pg/read-store.ts";
import type { DomainContext } from "#domain/context.ts";
import type { RejectedChanges } from "#src/api/audit/rejections.ts";
import type { Sockets } from "#src/api/http/socket.ts";
import { isForBuiltIn } from "#src/provisioners/external/tags.ts";
import { Context } from "./context.ts";

/** Members that are the same on every node. */
const HERE: ReadonlySet<string> = new Set(["config", "clock", "store", "encryption", "requests", "addresses"]);

type Options = {
  readonly config: Config;
  readonly clock: Clock;
  readonly store: ReadStore;
  readonly encryption: Encryption;
};

export const openReads = ({ config, clock, store, encryption }: Options): Context => {
  const opened = { store, elsewhere: new DatabaseBlobs(store) };
  const context = new Context({ config, clock, shards: NO_SHARDS }, opened, encryption, {
    metrics: undefined,
    telemetry: undefined,
  });
  const reads: Context = Object.create(context);
  const own: Readonly<Record<string, object>> = {
    jobs: createReadQueue(context.jobs),
    location: { isHere: () => false, countArrivals: () => undefined } satisfies DomainContext["location"],
    refused: NO_REFUSALS,
    topics: createReadTopics(context.topics, listSharedEventKinds(config)),
    // Only upgrade requests that declare it are served here (src/server.ts).
    sockets: { upgrade: (...given) => leaveLocalRead(() => context.sockets.upgrade(...given)) } satisfies Pick<
      Sockets,
      "upgrade"
    >,
  };
  for (const [name, value] of Object.entries(context)) {
    if (HERE.has(name) || typeof value !== "object" || value === null || value instanceof URL) continue;
    Object.defineProperty(reads, name, { value: forwardWhenUsed(value, own[name]), enumerable: true });
  }
  // Some settings and their sources differ between nodes; the active node's are shown.
  Object.defineProperty(reads, "sources", { value: forwardWhenUsed({}), enumerable: true });
  // Actors and pages use the same value.
  Object.defineProperty(reads, "accessUrl", {
    get: () => context.accessUrl,
    set: (url: URL) => {
      context.accessUrl = url;
    },
  });
  return reads;
};

/** What is known about the job queue without it: the built-in worker takes jobs with no special tags. */
const createReadQueue = ({ worker }: JobQueue) => ({
  worker,
  workersVersion: 0,
  workersFor: (tags: Tags): readonly string[] => (isForBuiltIn(tags) ? [worker.id] : passToActiveNode()),
});

/** Events that the active node sends are also published here. */
const createReadTopics = (
  topics: Topics<Events>,
  kinds: readonly SharedEventKind[],
): Pick<Topics<Events>, "subscribe"> => ({
  subscribe: (kind, id, listener) =>
    isLocalRead() && !isSharedEvent(kinds, kind) ? passToActiveNode() : topics.subscribe(kind, id, listener),
});

/** Delivers the active nodes' events to the streams of this node until the store is closed. */
export const followActiveNode = (store: ReadStore, ctx: Pick<Context, "topics" | "config">): void =>
  store.listen(createEventReceiver(ctx.topics, listSharedEventKinds(ctx.config)));

/** Rejected reads are not recorded; any other rejection needs an audit entry, which the active node writes. */
const NO_REFUSALS: Pick<RejectedChanges, "note"> = {
  note(_request, _status, attemptOf) {
    if (attemptOf()) passToActiveNode();
  },
};

/**
 * Behaves normally while the routes are created, but forwards every request that uses it. `own` stays available. Methods are called on the
 * object itself, because a proxy cannot access private members.
 */
const forwardWhenUsed = <T extends object>(thing: T, own: object = {}): T =>
  new Proxy(thing, {
    get(target, key) {
      if (Object.hasOwn(own, key)) return Reflect.get(own, key);
      if (isLocalRead()) passToActiveNode();
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value === "function") return callOrForward(target, value);
      return typeof value === "object" && value !== null ? forwardWhenUsed(value) : value;
    },
    has: (target, key) => (isLocalRead() ? passToActiveNode() : Reflect.has(target, key)),
    ownKeys: (target) => (isLocalRead() ? passToActiveNode() : Reflect.ownKeys(target)),
  });

const callOrForward =
  (target: object, run: CallableFunction) =>
  (...given: unknown[]): unknown =>
    isLocalRead() ? passToActiveNode() : Reflect.apply(run as never, target, given);
