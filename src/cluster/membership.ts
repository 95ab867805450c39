// The place of this process in a cluster: it joins, stands by while another node is active and passes on what comes, and returns once it
// is the active one itself.
import { hostname } from "node:os";
import type { Clock } from "#base/clock.ts";
import { address } from "#base/config/kinds.ts";
import { allowedHosts, type Config } from "#base/config.ts";
import type { Encryption } from "#base/encryption.ts";
import { keyId } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { hostName } from "#base/network/host-name.ts";
import { within } from "#base/retry.ts";
import { readTls } from "#base/tls.ts";
import { VERSION } from "#base/version.ts";
import { checkKeyForm, sharedKey } from "#db/engine/sealed.ts";
import { checkAccess } from "#db/pg/inspect.ts";
import type { LivingNode } from "#db/pg/living-node.ts";
import { ClusterNode } from "#db/pg/node.ts";
import type { PartsMember } from "#db/pg/parts/member.ts";
import { checkUploads, makeBucket } from "#db/pg/uploads.ts";
import type { NodeState } from "#schema/readiness.ts";
import { Forwarder, type PartPlaces } from "./forwarder.ts";
import type { NodeLinks } from "./node-link.ts";
import { elsewhere, nodeToken, type TakeNamed, takerOfNames } from "./passed-on.ts";
import type { SharedCounts } from "./shared-counts.ts";
import { refuseOtherSpeech } from "./unknown-nodes.ts";

/** A node without an active one alongside it needs no longer to become so. */
const AT_ONCE_MS = 1000;
/** How often the first start of a cluster looks for the key that another node stores. */
export const KEY_LOOK_MS = 250;
const LAST_STEPS_MS = 500;

export type Membership = {
  /** By which nodes wait for one another. */
  readonly clock: Clock;
  readonly node: LivingNode & Pick<ClusterNode, "openStore">;
  /** Where several nodes are active: what this one has, and how requests find the others. */
  readonly active?: ActiveMember | undefined;
  /** Listens until this node does so as the active one; undefined where there was no node to pass requests on to. */
  readonly forwarder: Forwarder | undefined;
  /** Reads what the other nodes say of requests that they pass on. */
  takerOfNames(encryption: Encryption): TakeNamed;
  /** What they are answered once this node is not the active one. */
  elsewhere(request: Request, encryption: Encryption, part?: number): Promise<Response>;
  /** Begins to hand over: anyone who comes to this port from now on is passed on to the next node, and waits for it. False where none exists. */
  standAside(port: number, encryption: Encryption): Promise<boolean>;
  /** Gives up the lease, and leaves once no one needs this node any more. The store must be closed by then. */
  leave(): Promise<void>;
};

/** What a node has, and how it listens, where several are active. */
export type ActiveMember = {
  readonly parts: PartsMember;
  /** The links to the other nodes. */
  links(encryption: Encryption): NodeLinks;
  /** What the nodes have counted of callers; there with the links. */
  readonly counts: SharedCounts | undefined;
  /** Listens outside, and gives this node's own server, on a port of this machine, what is its own. Answers the port. `partOf`: as of `PartPlaces`. */
  listen(server: number, encryption: Encryption, partOf: PartPlaces["partOf"]): number;
};

export type JoinOptions = {
  readonly config: Config;
  readonly clock: Clock;
  /** Another node has taken over: the process must stop. */
  fatal(error: Error): void;
  readonly signal?: AbortSignal | undefined;
  /** Called when it stands by. What it answers is ended before the node becomes active. */
  standsBy?(as: StandingBy): Beside | undefined;
};

export type StandingBy = {
  /** Where it listens. */
  readonly port: number;
  readonly node: ClusterNode;
  readonly encryption: Encryption;
  readonly takeNamed: TakeNamed;
};

/** What a spare does alongside passing on. */
export type Beside = AsyncDisposable & {
  /** The port of this machine at which the node answers reads; undefined before, and where it answers none. */
  readonly reads?: number | undefined;
};

/** Resolves when this node is the active one. Throws TlsError, UnsafeDatabaseError, BucketError, DatabaseVersionError, EncryptionKeyError, CommitError. */
export const joinCluster = async ({
  config,
  clock,
  signal,
  standsBy,
  ...options
}: JoinOptions): Promise<Membership> => {
  const fatal = (error: Error): void => {
    log("cluster").fatal("this node must not go on; stopping: {error}", { error });
    options.fatal(error);
  };
  const { database_url: url = "", cluster_lease: lease_ms } = config;
  const tells = config.cluster_reads === "every";
  const id = toNodeName(config);
  checkKeyForm({ directory: config.data_dir, digits: config.encryption_key });
  await checkAccess(url);
  await refuseOtherSpeech(readTls(config, clock.now()), { url, id, clock });
  await checkUploads(makeBucket(config, clock), url);
  const node = await ClusterNode.join({ url, id, version: VERSION, lease_ms, tells, clock, fatal });
  const { host, port } = config.address;
  const listen = (port: number, encryption: Encryption): Forwarder => {
    const own = { host: ["0.0.0.0", "::"].includes(host) ? "127.0.0.1" : host, port };
    const made = new Forwarder({
      hostname: host.replace(/^\[|\]$/g, ""),
      port,
      tls: readTls(config, clock.now()),
      clock,
      max_connections: config.max_connections,
      isOurs: ownHosts(config),
      token: nodeToken(encryption),
      leader: () => node.leader?.address,
      own: () => address.print(own),
      reads: () =>
        beside?.reads !== undefined && node.isCurrent ? { hostname: "127.0.0.1", port: beside.reads } : undefined,
      state: () => shownState(node),
    });
    own.port = made.port;
    return made;
  };
  let forwarder: Forwarder | undefined;
  let beside: Beside | undefined;
  try {
    const led = node.lead(signal);
    // Reported below, or not at all when something else goes wrong first.
    led.catch(() => {});
    const encryption = await sharedEncryption(node, config, clock, led);
    if (encryption && (node.leader || !(await within(clock, AT_ONCE_MS, led)))) {
      forwarder = listen(port, encryption);
      const takeNamed = takerOfNames(nodeToken(encryption));
      beside = standsBy?.({ port: forwarder.port, node, encryption, takeNamed });
    }
    await led;
    await beside?.[Symbol.asyncDispose]();
  } catch (error) {
    await Promise.all([
      beside?.[Symbol.asyncDispose](),
      signal?.aborted && forwarder?.leave(clock.monotonic() + lastMoments(config)),
    ]);
    forwarder?.end();
    await node.leave();
    throw error;
  }
  let aside: Forwarder | undefined;
  let until = 0;
  return {
    clock,
    node,
    forwarder,
    takerOfNames: (key) => takerOfNames(nodeToken(key)),
    elsewhere: (request, key, part) => elsewhere(request, nodeToken(key), clock, part),
    async standAside(port, encryption) {
      await node.lookAnew();
      if (!node.hasNext) return false;
      until = clock.monotonic() + lastMoments(config);
      aside = listen(port, encryption);
      aside.takeOver();
      return true;
    },
    async leave() {
      forwarder?.end();
      await node.giveUp();
      await aside?.leave(until);
      await node.leave();
    },
  };
};

/** As this node's server judges Host headers. */
export const ownHosts = (config: Config): ((host: string) => boolean) => {
  const names = new Set(allowedHosts(config).map((name) => name.toLowerCase()));
  return (host) => names.has(hostName(host) ?? "");
};

/** Of the time that a stop may take, the end is left for the last steps. */
export const lastMoments = ({ shutdown_timeout }: Config): number => Math.max(0, shutdown_timeout - LAST_STEPS_MS);

/**
 * The key of the nodes, compared with that of the cluster, so that a wrong one is notified of now and not when this node has to take over.
 * Undefined when this node became active before any key was known: then it is the first one. Throws EncryptionKeyError.
 */
const sharedEncryption = async (
  node: ClusterNode,
  { data_dir: directory, encryption_key: digits }: Config,
  clock: Clock,
  led: Promise<void>,
): Promise<Encryption | undefined> => {
  for (;;) {
    const fingerprint = await node.keyFingerprint();
    if (fingerprint !== undefined) return sharedKey({ directory, digits }, fingerprint);
    // Of nodes that start together for the first time one is active, and has not stored its key yet.
    if (await within(clock, KEY_LOOK_MS, led)) return undefined;
  }
};

/** What anyone may know of a node: no names of nodes. */
export const shownState = ({ state: { holder: _, ...shown } }: Pick<LivingNode, "state">): NodeState => shown;

/** Where other nodes reach this one. A test's server has no port yet, and no other node needs it. */
export const toNodeName = ({ node_address, address: { port } }: Config): string =>
  address.print(node_address ?? { host: hostname(), port }) + (node_address || port !== 0 ? "" : `-${keyId()}`);
