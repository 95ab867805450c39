// The place of this process in a cluster: it joins, stands by while another node is active and passes on what comes, and returns once it
// is the active one itself.
import { hostname } from "node:os";
import type { Clock } from "#base/clock.ts";
import { address } from "#base/config/kinds.ts";
import type { Config } from "#base/config.ts";
import { keyId } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { within } from "#base/retry.ts";
import { readTls } from "#base/tls.ts";
import { VERSION } from "#base/version.ts";
import { sharedKey } from "#db/engine/sealed.ts";
import { ClusterNode } from "#db/pg/node.ts";
import { Forwarder } from "./forwarder.ts";
import { nodeToken } from "./head.ts";

/** A node that nobody is active beside needs no longer to become so. */
const AT_ONCE_MS = 1000;

export type Membership = {
  readonly node: ClusterNode;
  /** Listens until this node does so as the active one; undefined where there was nobody to pass requests on to. */
  readonly forwarder: Forwarder | undefined;
};

type Options = {
  readonly config: Config;
  readonly clock: Clock;
  /** Another node has taken over: the process must stop. */
  fatal(error: Error): void;
  readonly signal?: AbortSignal | undefined;
  /** Called when it stands by: {port} is where it listens. */
  standsBy?(port: number): void;
};

/** Resolves when this node is the active one. Throws UnsafeDatabaseError, NewerDatabaseError, EncryptionKeyError, CommitError. */
export const joinCluster = async ({ config, clock, signal, standsBy, ...options }: Options): Promise<Membership> => {
  const fatal = (error: Error): void => {
    log("cluster").fatal("this node must not go on; stopping: {error}", { error });
    options.fatal(error);
  };
  const { database_url: url = "", cluster_lease: lease_ms } = config;
  const node = await ClusterNode.join({ url, id: nameOf(config), version: VERSION, lease_ms, clock, fatal });
  let forwarder: Forwarder | undefined;
  try {
    const fingerprint = await node.keyFingerprint();
    const place = { directory: config.data_dir, digits: config.encryption_key };
    // A wrong key is told of now and not when this node has to take over.
    const encryption = fingerprint === undefined ? undefined : sharedKey(place, fingerprint);
    const led = node.lead(signal);
    if (encryption && (node.leader || !(await within(clock, AT_ONCE_MS, led)))) {
      const tls = readTls(config, clock.now());
      const { host, port } = config.address;
      const own = { host: ["0.0.0.0", "::"].includes(host) ? "127.0.0.1" : host, port };
      forwarder = new Forwarder({
        hostname: host.replace(/^\[|\]$/g, ""),
        port,
        tls,
        clock,
        max_connections: config.max_connections,
        token: nodeToken(encryption),
        leader: () => node.leader?.address,
        own: () => address.print(own),
        problem: () => (node.view ? undefined : "The database does not answer."),
      });
      own.port = forwarder.port;
      log("cluster").info("node {id} stands by for {active}", { id: node.id, active: node.leader?.id });
      standsBy?.(forwarder.port);
    }
    await led;
    return { node, forwarder };
  } catch (error) {
    forwarder?.end();
    await node.leave();
    throw error;
  }
};

/** Where other nodes reach this one. A test's server has no port yet, and no other node needs it. */
const nameOf = ({ node_address, address: { port } }: Config): string =>
  address.print(node_address ?? { host: hostname(), port }) + (node_address || port !== 0 ? "" : `-${keyId()}`);
