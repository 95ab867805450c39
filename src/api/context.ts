// Dependencies of the HTTP layer: those of the use cases and those of connections.
import type { PrebuildKeeper } from "#actors/prebuilds/keeper.ts";
import type { BaseNode } from "#db/pg/base-node.ts";
import type { DomainContext } from "#domain/context.ts";
import type { RejectedChanges } from "./audit/rejections.ts";
import type { Addresses } from "./http/address.ts";
import type { OpenStreams } from "./http/open-streams.ts";
import type { Requests } from "./http/requests.ts";
import type { Sockets } from "./http/socket.ts";

export interface ApiContext extends DomainContext {
  readonly sockets: Sockets;
  readonly requests: Requests;
  readonly streams: OpenStreams;
  readonly addresses: Addresses;
  /** This process as a node of a cluster; undefined on a single server. */
  readonly cluster: BaseNode | undefined;
  /** Why presets have fewer prebuilt workspaces ready than configured. */
  readonly prebuilds: Pick<PrebuildKeeper, "problems">;
  /** Records rejected changes in the audit log. */
  readonly refused: RejectedChanges;
}
