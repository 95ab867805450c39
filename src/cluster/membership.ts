// Joins a cluster with one active node: the process stands by and forwards connections while another node is active, until it is active
// itself.
import { hostname } from "node:os";
import type { Clock } from "#base/clock.ts";
import { address } from "#base/config/kinds.ts";
import { type Config, getAllowedHosts } from "#base/config.ts";
import type { Encryption } from "#base/encryption.ts";
import { keyId } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { parseHostName } from "#base/network/host-name.ts";
import { finishesWithin } from "#base/retry.ts";
import { readTls } from "#base/tls.ts";
import { VERSION } from "#base/version.ts";
import { checkKeyForm, loadSharedKey } from "#db/engine/key-check.ts";
import type { BaseNode } from "#db/pg/base-node.ts";
import { checkAccess } from "#db/pg/inspect.ts";
import { ClusterNode } from "#db/pg/node.ts";
import type { ShardsMember } from "#db/pg/shards/member.ts";
import { checkUploads, makeBucket } from "#db/pg/uploads.ts";
import type { Location } from "#domain/location.ts";
import type { NodeState } from "#schema/readiness.ts";
import { decline, deriveNodeToken, makeForwardedAddressTaker, type TakeForwardedAddress } from "./forwarded-header.ts";
import { Forwarder, type ShardNodes } from "./forwarder.ts";
import type { LocationDeps } from "./location.ts";
import type { SharedCounts } from "./shared-counts.ts";
import { requireSameProtocol } from "./unknown-nodes.ts";

/** A node becomes active within this time if no other node is active. Otherwise it starts to stand by. */
const FIRST_NODE_TIMEOUT_MS = 1000;
/** How often the first start of a cluster checks for the key that another node stores. */
export const KEY_CHECK_INTERVAL_MS = 250;

/** The part of the shutdown timeout that is reserved for the last steps. */
const SHUTDOWN_RESERVE_MS = 500;

export type Membership = {
  /** The clock by which nodes wait for each other. */
  readonly clock: Clock;
  readonly node: BaseNode & Pick<ClusterNode, "openStore">;
  /** Set when several nodes are active: the shards of this node, and how requests reach the other nodes. */
  readonly active?: ActiveMember | undefined;
  /** Listens until this node's own server does; undefined if there was no node to forward to. */
  readonly forwarder: Forwarder | undefined;
  /** See `makeForwardedAddressTaker`. */
  makeForwardedAddressTaker(encryption: Encryption): TakeForwardedAddress;
  /** Returns the response that declines a request of another node, because this node is not active or does not own the shard. */
  decline(request: Request, encryption: Encryption, shard?: number): Promise<Response>;
  /** Starts to hand over: new connections to this port wait for the next node. Returns false if there is no other node. */
  standAside(port: number, encryption: Encryption): Promise<boolean>;
  /** Releases the lease and leaves the cluster once no client needs this node. The store must be closed before. */
  leave(): Promise<void>;
};

/** A node's shards and listener, when several nodes are active. */
export type ActiveMember = {
  readonly shards: ShardsMember;
  /** Opens links to the other nodes, and returns the location that uses them. */
  openLocation(deps: Pick<LocationDeps, "clock" | "index" | "copy"> & { readonly encryption: Encryption }): Location;
  /** Request counts shared by the nodes; undefined until the location is open. */
  readonly counts: SharedCounts | undefined;
  /**
   * Listens for clients, and forwards requests for this node to its own server on the local port `server`. Returns the port for clients.
   * `shardOf`: see `ShardNodes`.
   */
  listen(server: number, encryption: Encryption, shardOf: ShardNodes["shardOf"]): number;
};

export type JoinOptions = {
  readonly config: Config;
  readonly clock: Clock;
  /** Called when another node has taken over: the process must stop. */
  fatal(error: Error): void;
  readonly signal?: AbortSignal | undefined;
  /** Called when this node stands by. The returned services are disposed before the node becomes active. */
  standsBy?(context: StandingBy): StandbyServices | undefined;
};

/** A node that stands by. */
export type StandingBy = {
  /** The port that the node listens on. */
  readonly port: number;
  readonly node: ClusterNode;
  readonly encryption: Encryption;
  readonly takeForwardedAddress: TakeForwardedAddress;
};

/** Services that a standby node runs in addition to forwarding. */
export type StandbyServices = AsyncDisposable & {
  /** The local port at which the node serves reads; undefined while it serves none. */
  readonly reads?: number | undefined;
};

/**
 * Resolves when this node is the active one. Throws TlsError, UnsafeDatabaseError, BucketError, DatabaseVersionError, EncryptionKeyError,
 * CommitError.
 */
export const joinCluster = async ({
  config,
  clock,
  signal,
  standsBy,
  ...options
}: JoinOptions): Promise<Membership> => {
  const fatal = (error: Error): void => {
    log("cluster").fatal("this node must not continue; stopping: {error}", { error });
    options.fatal(error);
  };
  const { database_url: url = "", cluster_lease: lease_ms } = config;
  // Standby nodes that serve reads need notices of changes.
  const sendsNotices = config.cluster_reads === "every";
  const id = toNodeName(config);
  checkKeyForm({ directory: config.data_dir, digits: config.encryption_key });
  await checkAccess(url);
  await requireSameProtocol(readTls(config, clock.now()), { url, id, clock });
  await checkUploads(makeBucket(config, clock), url);
  const node = await ClusterNode.join({ url, id, version: VERSION, lease_ms, sendsNotices, clock, fatal });
  const { host, port } = config.address;
  const listen = (port: number, encryption: Encryption): Forwarder => {
    const own = { host: ["0.0.0.0", "::"].includes(host) ? "127.0.0.1" : host, port };
    const created = new Forwarder({
      hostname: host.replace(/^\[|\]$/g, ""),
      port,
      tls: readTls(config, clock.now()),
      clock,
      max_connections: config.max_connections,
      isOurs: makeHostCheck(config),
      token: deriveNodeToken(encryption),
      leader: () => node.leader?.address,
      own: () => address.print(own),
      reads: () =>
        services?.reads !== undefined && node.isCurrent ? { hostname: "127.0.0.1", port: services.reads } : undefined,
      state: () => presentNodeState(node),
    });
    own.port = created.port;
    return created;
  };
  let forwarder: Forwarder | undefined;
  let services: StandbyServices | undefined;
  try {
    const active = node.whenActive(signal);
    // The error is thrown below. If something else fails first, it is ignored.
    active.catch(() => {});
    const encryption = await loadSharedEncryption(node, config, clock, active);
    if (encryption && (node.leader || !(await finishesWithin(clock, FIRST_NODE_TIMEOUT_MS, active)))) {
      forwarder = listen(port, encryption);
      const takeForwardedAddress = makeForwardedAddressTaker(deriveNodeToken(encryption));
      services = standsBy?.({ port: forwarder.port, node, encryption, takeForwardedAddress });
    }
    await active;
    await services?.[Symbol.asyncDispose]();
  } catch (error) {
    await Promise.all([
      services?.[Symbol.asyncDispose](),
      signal?.aborted && forwarder?.drain(clock.monotonic() + forwardingTimeMs(config)),
    ]);
    forwarder?.end();
    await node.leaveCluster();
    throw error;
  }
  /** Forwards new clients while this node hands over. */
  let handoverForwarder: Forwarder | undefined;
  /** Monotonic time until which it forwards. */
  let forwardUntil = 0;
  return {
    clock,
    node,
    forwarder,
    makeForwardedAddressTaker: (key) => makeForwardedAddressTaker(deriveNodeToken(key)),
    decline: (request, key, shard) => decline(request, deriveNodeToken(key), clock, shard),
    async standAside(port, encryption) {
      await node.refreshView();
      if (!node.hasNext) return false;
      forwardUntil = clock.monotonic() + forwardingTimeMs(config);
      handoverForwarder = listen(port, encryption);
      handoverForwarder.acceptClients();
      return true;
    },
    async leave() {
      forwarder?.end();
      await node.releaseLease();
      await handoverForwarder?.drain(forwardUntil);
      await node.leaveCluster();
    },
  };
};

/** Returns a function that tells whether a Host header names this server, with the same rule as the server. */
export const makeHostCheck = (config: Config): ((host: string) => boolean) => {
  const names = new Set(getAllowedHosts(config).map((name) => name.toLowerCase()));
  return (host) => names.has(parseHostName(host) ?? "");
};

/** Returns the part of the shutdown timeout available before the last steps. */
export const forwardingTimeMs = ({ shutdown_timeout }: Config): number =>
  Math.max(0, shutdown_timeout - SHUTDOWN_RESERVE_MS);

/**
 * Returns this node's key after comparing it with the cluster's, so that a wrong key is reported now and not when the node must take over.
 * Returns undefined if this node is the first one, which becomes active before any key is stored. Throws EncryptionKeyError.
 */
const loadSharedEncryption = async (
  node: ClusterNode,
  { data_dir: directory, encryption_key: digits }: Config,
  clock: Clock,
  active: Promise<void>,
): Promise<Encryption | undefined> => {
  for (;;) {
    const fingerprint = await node.keyFingerprint();
    if (fingerprint !== undefined) return loadSharedKey({ directory, digits }, fingerprint);
    // When nodes start together for the first time, the active one may not have stored its key yet.
    if (await finishesWithin(clock, KEY_CHECK_INTERVAL_MS, active)) return undefined;
  }
};

/** Returns the state of a node for `/readyz`, without node names. */
export const presentNodeState = ({ state: { holder: _, ...state } }: Pick<BaseNode, "state">): NodeState => state;

/** Returns the address at which other nodes reach this one. A test server, whose port is not known yet, gets a random name instead. */
export const toNodeName = ({ node_address, address: { port } }: Config): string =>
  address.print(node_address ?? { host: hostname(), port }) + (node_address || port !== 0 ? "" : `-${keyId()}`);
