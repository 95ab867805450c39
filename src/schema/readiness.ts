// Wire shape of /readyz: whether the server is ready, and the state of a cluster node.
import { type Static, Type as t } from "@sinclair/typebox";
import { Generic } from "./generic.ts";
import { oneOf } from "./one-of.ts";
import { namedObject } from "./shape-names.ts";

const Node = oneOf(
  ["active", "spare"],
  "Whether this cluster node is active, or a spare that passes all requests on to the active node.",
);
const Lease = oneOf(
  ["held", "lapsed", "elsewhere", "free"],
  "Who holds the lease. `held`: this node. `lapsed`: this node, although it couldn't renew the lease. `elsewhere`: another node. `free`: no node.",
);
const Database = oneOf(["answers", "silent"], "Whether the database has responded to this node.");
const Standby = oneOf(
  ["connected", "missing", "hidden", "not required"],
  "The state of the database's synchronous standby. `missing`: writes wait. `hidden`: this node isn't allowed to see it.",
);

export const Readiness = namedObject("Readiness", {
  ...Generic.properties,
  node: t.Optional(Node),
  lease: t.Optional(Lease),
  database: t.Optional(Database),
  standby: t.Optional(Standby),
  parts: t.Optional(
    t.Integer({
      description: "The number of the 256 shards that this node owns. Only set if every node is active.",
    }),
  ),
});
export type Readiness = Static<typeof Readiness>;

/** The state of a cluster node. */
export type NodeState = Required<Pick<Readiness, "node" | "lease" | "database" | "standby">> & Pick<Readiness, "parts">;
