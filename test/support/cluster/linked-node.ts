// Creates a node for tests that only has connections to other nodes: a listener on its own port, and services.
import { systemClock } from "#base/clock.ts";
import type { OtherNode } from "#base/shards.ts";
import { Forwarder } from "#src/cluster/forwarder.ts";
import type { NodeService } from "#src/cluster/node-answering.ts";
import { NodeLinks } from "#src/cluster/node-link.ts";
import { parseCertificate } from "#src/cluster/peer.ts";

const STATE = { node: "active", lease: "held", database: "answers", standby: "connected" } as const;

export const NODES_TOKEN = "the-token-of-the-nodes";

export type LinkedNode = Disposable & {
  readonly links: NodeLinks;
  readonly forwarder: Forwarder;
  /** The node's address for others. */
  readonly nodeRef: OtherNode;
};

type Options = {
  readonly token?: string;
  readonly tls?: { readonly cert: string; readonly key: string };
  readonly port?: number;
};

/** Creates a node of this name with these services. */
export const createLinkedNode = (
  id: string,
  services: Readonly<Record<string, NodeService>> = {},
  { token = NODES_TOKEN, tls, port = 0 }: Options = {},
): LinkedNode => {
  const links = new NodeLinks({ clock: systemClock, id, token, certificate: tls && parseCertificate(tls.cert) });
  for (const [name, service] of Object.entries(services)) links.serve(name, service);
  const forwarder = new Forwarder({
    hostname: "127.0.0.1",
    port,
    tls,
    clock: systemClock,
    max_connections: 100,
    isOurs: () => true,
    token,
    leader: () => undefined,
    own: () => "",
    onNode: (socket, from) => links.accept(socket, from),
    state: () => STATE,
  });
  return {
    links,
    forwarder,
    nodeRef: { id, address: `127.0.0.1:${forwarder.port}` },
    [Symbol.dispose]() {
      links.close();
      forwarder.end();
    },
  };
};
