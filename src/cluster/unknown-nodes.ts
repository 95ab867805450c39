// Verifies that this node and the living nodes accept each other, before it acquires anything: either all use TLS or none does, and if all
// nodes are active, their certificates belong to one cluster. Otherwise no node could request its shards or forward requests to it.
import type { X509Certificate } from "node:crypto";
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";
import { type Tls, TlsError } from "#base/tls.ts";
import { CommitError } from "#db/engine/store.ts";
import { inspectPostgres } from "#db/pg/inspect.ts";
import { type NodeAddress, parseNodeAddress } from "./connect.ts";
import { isGivenByAuthority, isNode, parseCertificate } from "./peer.ts";

/** A node that does not respond in time is skipped, because it may be dead. */
const ANSWER_TIMEOUT_MS = 3_000;

type PresentedCertificate = { readonly certificate: X509Certificate; readonly isTrusted: boolean };
type OwnCertificate = Pick<Tls, "cert" | "key">;
type Cluster = { readonly url: string; readonly id: string; readonly clock: Clock };

/** Throws `TlsError` if a living node uses TLS and this one does not, or the other way around. `id`: the name of this node. */
export const requireSameProtocol = async (own: OwnCertificate | undefined, cluster: Cluster): Promise<void> => {
  const others = await listOtherNodes(cluster);
  const spoken = await Promise.all(others.map((node) => detectProtocol(node, cluster.clock)));
  const unlike = others.filter((_, n) => spoken[n] === (own ? "plain" : "tls"));
  if (unlike.length === 0) return;
  const [here, there] = own ? ["TLS", "plain HTTP"] : ["plain HTTP", "TLS"];
  throw new TlsError(
    `this node speaks ${here}, and ${formatNames(unlike)} ${there}: give all nodes tls_cert_file and tls_key_file, or none of them. To change it, stop all nodes first`,
  );
};

/** Throws `TlsError` if a living node and this one do not accept each other's certificates. */
export const requireMutualTrust = async (own: OwnCertificate, cluster: Cluster): Promise<void> => {
  const { clock } = cluster;
  const others = await listOtherNodes(cluster);
  if (others.length === 0) return;
  const certificate = parseCertificate(own.cert);
  const isTrusted = (await presentToItself(own, clock))?.isTrusted === true;
  const shown = await Promise.all(others.map((node) => readCertificate(node, clock)));
  const strange = others.filter((_, n) => {
    const peer = shown[n];
    return (
      peer !== undefined &&
      !(isNode(peer.certificate, peer.isTrusted, certificate) && isNode(certificate, isTrusted, peer.certificate))
    );
  });
  if (strange.length === 0) return;
  throw new TlsError(
    `this node's certificate and that of ${formatNames(strange)} are not of one cluster: nodes need one certificate, or certificates for one name from an authority that each machine trusts`,
  );
};

/** Returns the addresses of the other working nodes: the active one, or all of them. */
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

/** Presents this node's certificate to itself, the only way to find out whether a trusted authority issued it. */
const presentToItself = async (tls: OwnCertificate, clock: Clock): Promise<PresentedCertificate | undefined> => {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, tls, socket: { data: () => {} } });
  try {
    return await readCertificate({ hostname: "127.0.0.1", port: listener.port }, clock);
  } finally {
    listener.stop(true);
  }
};

/** Returns the protocol spoken there, TLS or plain, whichever gets a response first; undefined if no node responds. */
const detectProtocol = async (node: NodeAddress, clock: Clock): Promise<"tls" | "plain" | undefined> => {
  const { promise, resolve } = Promise.withResolvers<"tls" | "plain" | undefined>();
  const looks = [
    readCertificate(node, clock).then((shown) => shown && resolve("tls")),
    isPlainAt(node, clock).then((isPlain) => isPlain && resolve("plain")),
  ];
  void Promise.all(looks).then(() => resolve(undefined));
  return promise;
};

const readCertificate = (node: NodeAddress, clock: Clock): Promise<PresentedCertificate | undefined> =>
  connectAndWait<PresentedCertificate>(node, clock, (tell) => ({
    tls: { rejectUnauthorized: false },
    handshake(socket, _, problem) {
      const certificate = socket.getPeerX509Certificate();
      tell(certificate && { certificate, isTrusted: isGivenByAuthority(problem) });
    },
  }));

/** Any response means HTTP. */
const isPlainAt = async (node: NodeAddress, clock: Clock): Promise<boolean> =>
  (await connectAndWait<true>(node, clock, (tell) => ({
    open: (socket) => void socket.write("GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
    data: (_, bytes) => tell(bytes.subarray(0, 5).toString("latin1") === "HTTP/" || undefined),
  }))) === true;

type Asking = Bun.SocketHandler & { readonly tls?: { readonly rejectUnauthorized: false } };

/** Returns what a connection receives in time; undefined if it is closed or stays silent. */
const connectAndWait = async <T>(
  { hostname, port }: NodeAddress,
  clock: Clock,
  ask: (tell: (found: T | undefined) => void) => Asking,
): Promise<T | undefined> => {
  const { promise, resolve } = Promise.withResolvers<T | undefined>();
  const resolveEmpty = (): void => resolve(undefined);
  const { tls, ...handlers } = ask(resolve);
  const connected = Bun.connect({
    hostname,
    port,
    ...(tls ? { tls } : {}),
    socket: { data: () => {}, close: resolveEmpty, error: resolveEmpty, ...handlers },
  });
  connected.catch(resolveEmpty);
  const over = new AbortController();
  const found = await Promise.race([promise, pause(clock, ANSWER_TIMEOUT_MS, over.signal).then(() => undefined)]);
  over.abort();
  void connected.then((socket) => socket.end()).catch(() => {});
  return found;
};
