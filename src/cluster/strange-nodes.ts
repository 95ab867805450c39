// Where several nodes are active: whether this one and those that live take each other for nodes, before it takes parts of them. With another
// certificate it would have parts that nobody can ask for.
import type { X509Certificate } from "node:crypto";
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";
import { type Tls, TlsError } from "#base/tls.ts";
import { CommitError } from "#db/engine/store.ts";
import { inspectPostgres } from "#db/pg/inspect.ts";
import { type NodePlace, placeOf } from "./connect.ts";
import { certificateOf, isGivenByAuthority, isNode } from "./peer.ts";

/** A node that does not answer in time is looked at by nobody: it may be dead. */
const ANSWER_MS = 3_000;

type Shown = { readonly certificate: X509Certificate; readonly isTrusted: boolean };
type Own = Pick<Tls, "cert" | "key">;

/** Throws `TlsError` where a living node and this one do not take each other for nodes. `id`: the name of this node. */
export const refuseStrangeNodes = async (
  own: Own,
  { url, id, clock }: { readonly url: string; readonly id: string; readonly clock: Clock },
): Promise<void> => {
  const members = await inspectPostgres(url).then(
    ({ view }) => view?.members ?? [],
    (error: unknown) => {
      // Joining waits longer for it, and says the same.
      if (error instanceof CommitError) return [];
      throw error;
    },
  );
  const others = members.flatMap(({ id: other, address }) => (other === id ? [] : (placeOf(address) ?? [])));
  if (others.length === 0) return;
  const certificate = certificateOf(own.cert);
  const isTrusted = (await shownByItself(own, clock))?.isTrusted === true;
  const shown = await Promise.all(others.map((place) => shownAt(place, clock)));
  const strange = others.filter((_, n) => {
    const peer = shown[n];
    return (
      peer !== undefined &&
      !(isNode(peer.certificate, peer.isTrusted, certificate) && isNode(certificate, isTrusted, peer.certificate))
    );
  });
  if (strange.length === 0) return;
  const names = strange.map(({ hostname, port }) => `${hostname} port ${port}`).join(", ");
  throw new TlsError(
    `this node's certificate and that of ${names} are not of one cluster: nodes need one certificate, or certificates for one name from an authority that each machine trusts`,
  );
};

/** Whether an authority that this machine trusts has given this certificate is known only by showing it. */
const shownByItself = async (tls: Own, clock: Clock): Promise<Shown | undefined> => {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, tls, socket: { data: () => {} } });
  try {
    return await shownAt({ hostname: "127.0.0.1", port: listener.port }, clock);
  } finally {
    listener.stop(true);
  }
};

const shownAt = async ({ hostname, port }: NodePlace, clock: Clock): Promise<Shown | undefined> => {
  const { promise, resolve } = Promise.withResolvers<Shown | undefined>();
  const nothing = (): void => resolve(undefined);
  const connected = Bun.connect({
    hostname,
    port,
    tls: { rejectUnauthorized: false },
    socket: {
      handshake(socket, _, problem) {
        const certificate = socket.getPeerX509Certificate();
        resolve(certificate && { certificate, isTrusted: isGivenByAuthority(problem) });
      },
      data: () => {},
      close: nothing,
      error: nothing,
    },
  });
  connected.catch(nothing);
  const over = new AbortController();
  const found = await Promise.race([promise, pause(clock, ANSWER_MS, over.signal).then(() => undefined)]);
  over.abort();
  void connected.then((socket) => socket.end()).catch(() => {});
  return found;
};
