// The place of this process in a cluster whose nodes all work: it has parts, and what comes to it finds the node that has the part it is about.
import type { Clock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import { log } from "#base/log.ts";
import { pause, within } from "#base/retry.ts";
import { readTls } from "#base/tls.ts";
import { VERSION } from "#base/version.ts";
import { checkKeyForm, sharedKey } from "#db/engine/sealed.ts";
import { checkAccess } from "#db/pg/inspect.ts";
import { PartsMember } from "#db/pg/parts/member.ts";
import { checkUploads, makeBucket } from "#db/pg/uploads.ts";
import { Forwarder } from "./forwarder.ts";
import {
  type JoinOptions,
  KEY_LOOK_MS,
  lastMoments,
  type Membership,
  ownHosts,
  type StandingBy,
  shownState,
  toNodeName,
} from "./membership.ts";
import { NodeLinks } from "./node-link.ts";
import { elsewhere, nodeToken, takerOfNames } from "./passed-on.ts";
import { parseCertificate } from "./peer.ts";
import { SharedCounts } from "./shared-counts.ts";
import { refuseOtherSpeech, refuseUnknownNodes } from "./unknown-nodes.ts";

/** What others have asked of this node may take so long to be answered once it ends. */
const ANSWERS_MS = 2_000;

type Options = Omit<JoinOptions, "standsBy"> & {
  /** What this node answers alongside its parts, from the database alone. */
  beside?(
    as: Omit<StandingBy, "port" | "node"> & { readonly node: PartsMember; readonly counts: SharedCounts | undefined },
  ): AsyncDisposable & { readonly port: number };
};

/** Resolves when this node is active. Throws TlsError, UnsafeDatabaseError, BucketError, DatabaseVersionError, EncryptionKeyError, CommitError. */
export const joinActive = async ({ config, clock, signal, beside, ...options }: Options): Promise<Membership> => {
  const fatal = (error: Error): void => {
    log("cluster").fatal("this node must not go on; stopping: {error}", { error });
    options.fatal(error);
  };
  const { database_url: url = "", cluster_lease: lease_ms } = config;
  // Before anything is had: a key or a certificate that cannot be used ends the start.
  checkKeyForm({ directory: config.data_dir, digits: config.encryption_key });
  const tls = readTls(config, clock.now());
  const id = toNodeName(config);
  await checkAccess(url);
  await refuseOtherSpeech(tls, { url, id, clock });
  if (tls) await refuseUnknownNodes(tls, { url, id, clock });
  await checkUploads(makeBucket(config, clock), url);
  const node = await PartsMember.join({
    url,
    id,
    version: VERSION,
    lease_ms,
    tells: true,
    clock,
    fatal,
  });
  try {
    await checkKey(node, config, clock, signal);
  } catch (error) {
    await node.leave();
    throw error;
  }
  let forwarder: Forwarder | undefined;
  let reads: ReturnType<NonNullable<typeof beside>> | undefined;
  let links: NodeLinks | undefined;
  let counts: SharedCounts | undefined;
  let until = 0;
  return {
    clock,
    node,
    forwarder: undefined,
    active: {
      parts: node,
      links(encryption) {
        const certificate = tls && parseCertificate(tls.cert);
        links ??= new NodeLinks({ clock, id: node.id, token: nodeToken(encryption), certificate });
        counts ??= new SharedCounts({ clock, parts: node, links });
        const nodes = links;
        node.onlyWhereReached((other) => nodes.reaches(other));
        return links;
      },
      get counts() {
        return counts;
      },
      listen(server, encryption, partOf) {
        reads = beside?.({ node, encryption, counts, takeNamed: takerOfNames(nodeToken(encryption)) });
        const { host, port } = config.address;
        forwarder = new Forwarder({
          hostname: host.replace(/^\[|\]$/g, ""),
          port,
          tls,
          clock,
          max_connections: config.max_connections,
          isOurs: ownHosts(config),
          token: nodeToken(encryption),
          onNode: links && ((socket, from) => (links as NodeLinks).accept(socket, from)),
          reads: () => (reads && node.isCurrent ? { hostname: "127.0.0.1", port: reads.port } : undefined),
          parts: {
            here: () => (until === 0 ? { hostname: "127.0.0.1", port: server } : undefined),
            has: (part) => node.has(part),
            placeOf: (part) => node.nodeOf(part)?.address,
            lifeAt: (address) => node.lifeAt(address),
            partOf,
          },
          state: () => shownState(node),
        });
        return forwarder.port;
      },
    },
    takerOfNames: (key) => takerOfNames(nodeToken(key)),
    elsewhere: (request, key, part) => elsewhere(request, nodeToken(key), clock, part),
    async standAside() {
      // What would come now came to a server that ends.
      void node.rest();
      await node.lookAnew();
      if (!node.hasNext) return false;
      until = clock.monotonic() + lastMoments(config);
      return true;
    },
    async leave() {
      counts?.stop();
      await reads?.[Symbol.asyncDispose]();
      // What others have asked of this node's actors is answered by now.
      if (links) await within(clock, ANSWERS_MS, links.leave());
      await node.giveUp();
      // Anyone who has waited for the parts of this node, or comes here still, is passed on to the nodes that have them now.
      if (until > 0) await forwarder?.leave(until);
      forwarder?.end();
      links?.close();
      await node.leave();
    },
  };
};

/** Waits for the key of the cluster, which its first node makes, and compares this node's with it. Throws EncryptionKeyError. */
const checkKey = async (
  node: PartsMember,
  { data_dir: directory, encryption_key: digits }: Config,
  clock: Clock,
  signal: AbortSignal | undefined,
): Promise<void> => {
  for (;;) {
    signal?.throwIfAborted();
    const fingerprint = await node.keyFingerprint();
    if (fingerprint !== undefined) return void sharedKey({ directory, digits }, fingerprint);
    if (node.isFirst) return;
    await pause(clock, KEY_LOOK_MS);
  }
};
