// What the HTTP edge works with: what use cases have, and what belongs to connections.
import type { PrebuildKeeper } from "#actors/prebuilds/keeper.ts";
import type { LivingNode } from "#db/pg/living-node.ts";
import type { DomainContext } from "#domain/context.ts";
import type { RefusedChanges } from "./audit/refused.ts";
import type { Addresses } from "./http/address.ts";
import type { OpenStreams } from "./http/open-streams.ts";
import type { Requests } from "./http/requests.ts";
import type { Sockets } from "./http/socket.ts";

export interface ApiContext extends DomainContext {
  readonly sockets: Sockets;
  readonly requests: Requests;
  readonly streams: OpenStreams;
  readonly addresses: Addresses;
  /** This process as a node of a cluster; undefined where there is one server. */
  readonly cluster: LivingNode | undefined;
  /** Why presets have fewer ready than they want. */
  readonly prebuilds: Pick<PrebuildKeeper, "problems">;
  /** Tells the audit log of changes that were refused. */
  readonly refused: RefusedChanges;
}
