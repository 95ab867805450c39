// Verifies that a joining node and the running nodes accept each other, before the node acquires anything. Either all nodes use TLS or none
// does. If all nodes are active, their certificates must belong to one cluster. Otherwise nodes could not exchange shards or forward
// requests.
import type { X509Certificate } from "node:crypto";
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";
import { type Tls, TlsError } from "#base/tls.ts";
import { CommitError } from "#db/engine/store.ts";
import { inspectPostgres } from "#db/pg/inspect.ts";
import { type NodeAddress, parseNodeAddress } from "./connect.ts";
import { isIssuedByAuthority, isNode, parseCertificate } from "./peer.ts";

/** A node that does not respond in time is skipped, because it may be dead. */
const ANSWER_TIMEOUT_MS = 3_000;

type PresentedCertificate = { readonly certificate: X509Certificate; readonly isTrusted: boolean };
type OwnCertificate = Pick<Tls, "cert" | "key">;
type Cluster = { readonly url: string; readonly id: string; readonly clock: Clock };

/** Throws `TlsError` if a running node uses TLS and this one does not, or the other way around. `id`: the name of this node. */
export const requireSameProtocol = async (own: OwnCertificate | undefined, cluster: Cluster): Promise<void> => {
  const others = await listOtherNodes(cluster);
  const protocols = await Promise.all(others.map((node) => detectProtocol(node, cluster.clock)));
  const different = others.filter((_, index) => protocols[index] === (own ? "plain" : "tls"));
  if (different.length === 0) return;
  const [here, there] = own ? ["TLS", "plain HTTP"] : ["plain HTTP", "TLS"];
  throw new TlsError(
    `this node speaks ${here}, and ${formatNames(different)} ${there}: give all nodes tls_cert_file and tls_key_file, or none of them. To change it, stop all nodes first`,
  );
};

/** Throws `TlsError` if a running node and this one do not accept each other's certificates. */
export const requireMutualTrust = async (own: OwnCertificate, cluster: Cluster): Promise<void> => {
  const { clock } = cluster;
  const others = await listOtherNodes(cluster);
  if (others.length === 0) return;
  const certificate = parseCertificate(own.cert);
  const isTrusted = (await presentToItself(own, clock))?.isTrusted === true;
  const presented = await Promise.all(others.map((node) => readCertificate(node, clock)));
  const rejected = others.filter((_, index) => {
    const peer = presented[index];
    return (
      peer !== undefined &&
      !(isNode(peer.certificate, peer.isTrusted, certificate) && isNode(certificate, isTrusted, peer.certificate))
    );
  });
  if (rejected.length === 0) return;
  throw new TlsError(
    `this node's certificate and that of ${formatNames(rejected)} are not of one cluster: nodes need one certificate, or certificates for one name from an authority that each machine trusts`,
  );
};

/** Returns the addresses of the other running nodes: the active one, or all active ones. */
const listOtherNodes = async ({ url, id }: Cluster): Promise<NodeAddress[]> => {
  const found = await inspectPostgres(url).then(
    ({ view }) => [...(view?.members ?? []), ...(view?.active ? [view.active] : [])],
    (error: unknown) => {
      // Joining waits longer for the database, and reports the same error.
      if (error instanceof CommitError) return [];
      throw error;
    },
  );
  return found.flatMap(({ id: other, address }) => (other === id ? [] : (parseNodeAddress(address) ?? [])));
};

const formatNames = (nodes: readonly NodeAddress[]): string =>
  nodes.map(({ hostname, port }) => `${hostname} port ${port}`).join(", ");

/** Presents this node's certificate to itself. Only a handshake shows whether a trusted authority issued the certificate. */
const presentToItself = async (tls: OwnCertificate, clock: Clock): Promise<PresentedCertificate | undefined> => {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, tls, socket: { data: () => {} } });
  try {
    return await readCertificate({ hostname: "127.0.0.1", port: listener.port }, clock);
  } finally {
    listener.stop(true);
  }
};

/** Tries TLS and plain HTTP at the same time, and returns the one that gets a response; undefined if no node responds. */
const detectProtocol = async (node: NodeAddress, clock: Clock): Promise<"tls" | "plain" | undefined> => {
  const { promise, resolve } = Promise.withResolvers<"tls" | "plain" | undefined>();
  const attempts = [
    readCertificate(node, clock).then((presented) => presented && resolve("tls")),
    speaksPlainHttp(node, clock).then((isPlain) => isPlain && resolve("plain")),
  ];
  void Promise.all(attempts).then(() => resolve(undefined));
  return promise;
};

const readCertificate = (node: NodeAddress, clock: Clock): Promise<PresentedCertificate | undefined> =>
  connectAndWait<PresentedCertificate>(node, clock, (resolve) => ({
    tls: { rejectUnauthorized: false },
    handshake(socket, _, problem) {
      const certificate = socket.getPeerX509Certificate();
      resolve(certificate && { certificate, isTrusted: isIssuedByAuthority(problem) });
    },
  }));

/** Returns whether the node answers plain HTTP with any response. */
const speaksPlainHttp = async (node: NodeAddress, clock: Clock): Promise<boolean> =>
  (await connectAndWait<true>(node, clock, (resolve) => ({
    open: (socket) => void socket.write("GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
    data: (_, bytes) => resolve(bytes.subarray(0, 5).toString("latin1") === "HTTP/" || undefined),
  }))) === true;

type ProbeHandlers = Bun.SocketHandler & { readonly tls?: { readonly rejectUnauthorized: false } };

/** Connects with the probe's handlers and returns the value that they resolve; undefined if the connection closes or stays silent. */
const connectAndWait = async <T>(
  { hostname, port }: NodeAddress,
  clock: Clock,
  makeHandlers: (resolve: (found: T | undefined) => void) => ProbeHandlers,
): Promise<T | undefined> => {
  const { promise, resolve } = Promise.withResolvers<T | undefined>();
  const resolveEmpty = (): void => resolve(undefined);
  const { tls, ...handlers } = makeHandlers(resolve);
  const connected = Bun.connect({
    hostname,
    port,
    ...(tls ? { tls } : {}),
    socket: { data: () => {}, close: resolveEmpty, error: resolveEmpty, ...handlers },
  });
  connected.catch(resolveEmpty);
  const timeout = new AbortController();
  const found = await Promise.race([promise, pause(clock, ANSWER_TIMEOUT_MS, timeout.signal).then(() => undefined)]);
  timeout.abort();
  void connected.then((socket) => socket.end()).catch(() => {});
  return found;
};
