// Membership in a cluster where all nodes are active: this process owns shards, and each request is routed to the node that owns its shard.
import type { Clock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import { log } from "#base/log.ts";
import { finishesWithin, pause } from "#base/retry.ts";
import { readTls } from "#base/tls.ts";
import { VERSION } from "#base/version.ts";
import { checkKeyForm, loadSharedKey } from "#db/engine/key-check.ts";
import { checkAccess } from "#db/pg/inspect.ts";
import { ShardsMember } from "#db/pg/shards/member.ts";
import { checkUploads, makeBucket } from "#db/pg/uploads.ts";
import { decline, deriveNodeToken, makeForwardedAddressTaker } from "./forwarded-header.ts";
import { Forwarder } from "./forwarder.ts";
import { createSharedLocation } from "./location.ts";
import {
  forwardingTimeMs,
  type JoinOptions,
  KEY_CHECK_INTERVAL_MS,
  type Membership,
  makeHostCheck,
  presentNodeState,
  type StandingBy,
  toNodeName,
} from "./membership.ts";
import { NodeLinks } from "./node-link.ts";
import { parseCertificate } from "./peer.ts";
import { SharedCounts } from "./shared-counts.ts";
import { requireMutualTrust, requireSameProtocol } from "./unknown-nodes.ts";

/** Time to finish answering other nodes during shutdown. */
const ANSWER_TIMEOUT_MS = 2_000;

type Options = Omit<JoinOptions, "standsBy"> & {
  /** Starts the read-only server that runs next to the shards of this node. */
  openReads?(
    context: Omit<StandingBy, "port" | "node"> & {
      readonly node: ShardsMember;
      readonly counts: SharedCounts | undefined;
    },
  ): AsyncDisposable & { readonly port: number };
};

/**
 * Resolves when this node is active. Throws TlsError, UnsafeDatabaseError, BucketError, DatabaseVersionError, EncryptionKeyError,
 * CommitError.
 */
export const joinActive = async ({ config, clock, signal, openReads, ...options }: Options): Promise<Membership> => {
  const fatal = (error: Error): void => {
    log("cluster").fatal("this node must not continue; stopping: {error}", { error });
    options.fatal(error);
  };
  const { database_url: url = "", cluster_lease: lease_ms } = config;
  // These checks run before the node acquires anything: an unusable key or certificate ends the startup.
  checkKeyForm({ directory: config.data_dir, digits: config.encryption_key });
  const tls = readTls(config, clock.now());
  const id = toNodeName(config);
  await checkAccess(url);
  await requireSameProtocol(tls, { url, id, clock });
  if (tls) await requireMutualTrust(tls, { url, id, clock });
  await checkUploads(makeBucket(config, clock), url);
  const node = await ShardsMember.join({
    url,
    id,
    version: VERSION,
    lease_ms,
    sendsNotices: true,
    clock,
    fatal,
  });
  try {
    await checkKey(node, config, clock, signal);
  } catch (error) {
    await node.leaveCluster();
    throw error;
  }
  let forwarder: Forwarder | undefined;
  let reads: ReturnType<NonNullable<typeof openReads>> | undefined;
  let links: NodeLinks | undefined;
  let counts: SharedCounts | undefined;
  /** Monotonic time until which clients are forwarded during shutdown; 0 before the shutdown. */
  let forwardUntil = 0;
  return {
    clock,
    node,
    forwarder: undefined,
    active: {
      shards: node,
      openLocation({ encryption, ...deps }) {
        const certificate = tls && parseCertificate(tls.cert);
        const nodes = new NodeLinks({ clock, id: node.id, token: deriveNodeToken(encryption), certificate });
        links = nodes;
        counts = new SharedCounts({ clock, shards: node, links: nodes });
        node.requireReachable((other) => nodes.reaches(other));
        return createSharedLocation({ ...deps, shards: node, links: nodes });
      },
      get counts() {
        return counts;
      },
      listen(server, encryption, shardOf) {
        reads = openReads?.({
          node,
          encryption,
          counts,
          takeForwardedAddress: makeForwardedAddressTaker(deriveNodeToken(encryption)),
        });
        const { host, port } = config.address;
        forwarder = new Forwarder({
          hostname: host.replace(/^\[|\]$/g, ""),
          port,
          tls,
          clock,
          max_connections: config.max_connections,
          isOurs: makeHostCheck(config),
          token: deriveNodeToken(encryption),
          onNode: links && ((socket, from) => (links as NodeLinks).accept(socket, from)),
          reads: () => (reads && node.isCurrent ? { hostname: "127.0.0.1", port: reads.port } : undefined),
          shards: {
            here: () => (forwardUntil === 0 ? { hostname: "127.0.0.1", port: server } : undefined),
            has: (shard) => node.has(shard),
            addressOf: (shard) => node.nodeOf(shard)?.address,
            incarnationAt: (address) => node.incarnationAt(address),
            shardOf,
          },
          state: () => presentNodeState(node),
        });
        return forwarder.port;
      },
    },
    makeForwardedAddressTaker: (key) => makeForwardedAddressTaker(deriveNodeToken(key)),
    decline: (request, key, shard) => decline(request, deriveNodeToken(key), clock, shard),
    async standAside() {
      // Shards that arrived now would belong to a server that is stopping.
      void node.rest();
      await node.refreshView();
      if (!node.hasNext) return false;
      forwardUntil = clock.monotonic() + forwardingTimeMs(config);
      return true;
    },
    async leave() {
      counts?.stop();
      await reads?.[Symbol.asyncDispose]();
      // Finishes answering the other nodes' calls to this node's actors.
      if (links) await finishesWithin(clock, ANSWER_TIMEOUT_MS, links.drain());
      await node.handOverAll();
      // Clients that waited for this node's shards or still connect here are forwarded to the shards' new owners.
      if (forwardUntil > 0) await forwarder?.drain(forwardUntil);
      forwarder?.end();
      links?.close();
      await node.leaveCluster();
    },
  };
};

/** Waits for the cluster's key, which its first node creates, and compares this node's key with it. Throws EncryptionKeyError. */
const checkKey = async (
  node: ShardsMember,
  { data_dir: directory, encryption_key: digits }: Config,
  clock: Clock,
  signal: AbortSignal | undefined,
): Promise<void> => {
  for (;;) {
    signal?.throwIfAborted();
    const fingerprint = await node.keyFingerprint();
    if (fingerprint !== undefined) return void loadSharedKey({ directory, digits }, fingerprint);
    if (node.isFirst) return;
    await pause(clock, KEY_CHECK_INTERVAL_MS);
  }
};
