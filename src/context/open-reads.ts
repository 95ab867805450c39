// The context of a node that serves reads while another node is active. It has the database and pure code. It lacks the active node's
// memory (actors, topics, queues, connections into workspaces) and all writes: a request that uses them is forwarded
// (src/base/network/local-reads.ts). Only the members listed below are available, so that no new member is served here by mistake.
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
const SAME_MEMBERS: ReadonlySet<string> = new Set(["config", "clock", "store", "encryption", "requests", "addresses"]);

type Options = {
  readonly config: Config;
  readonly clock: Clock;
  readonly store: ReadStore;
  readonly encryption: Encryption;
};

export const openReads = ({ config, clock, store, encryption }: Options): Context => {
  const database = { store, sharedBlobs: new DatabaseBlobs(store) };
  const context = new Context({ config, clock, shards: NO_SHARDS }, database, encryption, {
    metrics: undefined,
    telemetry: undefined,
  });
  const reads: Context = Object.create(context);
  const available: Readonly<Record<string, object>> = {
    jobs: createReadQueue(context.jobs),
    location: { isHere: () => false, countArrivals: () => undefined } satisfies DomainContext["location"],
    refused: FORWARDED_REJECTIONS,
    topics: createReadTopics(context.topics, listSharedEventKinds(config)),
    // Only upgrade requests of routes that allow it are served here (src/server.ts).
    sockets: { upgrade: (...args) => leaveLocalRead(() => context.sockets.upgrade(...args)) } satisfies Pick<
      Sockets,
      "upgrade"
    >,
  };
  for (const [name, value] of Object.entries(context)) {
    if (SAME_MEMBERS.has(name) || typeof value !== "object" || value === null || value instanceof URL) continue;
    Object.defineProperty(reads, name, { value: forwardWhenUsed(value, available[name]), enumerable: true });
  }
  // Some settings and their sources differ between nodes; the active node's are shown.
  Object.defineProperty(reads, "sources", { value: forwardWhenUsed({}), enumerable: true });
  // Set after the server listens, and used by both contexts.
  Object.defineProperty(reads, "accessUrl", {
    get: () => context.accessUrl,
    set: (url: URL) => {
      context.accessUrl = url;
    },
  });
  return reads;
};

/** The part of the job queue that is the same on every node: the built-in worker takes jobs without special tags. */
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

/** Rejected reads are not recorded. Any other rejection needs an audit entry, which the active node writes. */
const FORWARDED_REJECTIONS: Pick<RejectedChanges, "note"> = {
  note(_request, _status, attemptOf) {
    if (attemptOf()) passToActiveNode();
  },
};

/**
 * Returns a proxy that behaves like the object while the routes are created, and forwards every request that uses it. The members of
 * `available` can be used. Methods are called on the object itself, because a proxy cannot access private members.
 */
const forwardWhenUsed = <T extends object>(object: T, available: object = {}): T =>
  new Proxy(object, {
    get(target, key) {
      if (Object.hasOwn(available, key)) return Reflect.get(available, key);
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
  (...args: unknown[]): unknown =>
    isLocalRead() ? passToActiveNode() : Reflect.apply(run as never, target, args);
