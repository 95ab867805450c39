// Wire shape of /readyz: whether the server is ready, and the state of a cluster node.
import { type Static, Type as t } from "@sinclair/typebox";
import { Generic } from "./generic.ts";
import { oneOf } from "./one-of.ts";
import { namedObject } from "./shape-names.ts";

const Node = oneOf(["active", "spare"], "The node of a cluster that works, or one that passes everything on to it.");
const Lease = oneOf(
  ["held", "lapsed", "elsewhere", "free"],
  "Who holds the lease: this node, this node although it could not renew it, another node, or none.",
);
const Database = oneOf(["answers", "silent"], "Whether the database has answered this node.");
const Standby = oneOf(
  ["connected", "missing", "hidden", "not required"],
  "The synchronous standby of the database. While it is missing, writes wait; hidden: it may not be seen.",
);

export const Readiness = namedObject("Readiness", {
  ...Generic.properties,
  node: t.Optional(Node),
  lease: t.Optional(Lease),
  database: t.Optional(Database),
  standby: t.Optional(Standby),
  parts: t.Optional(
    t.Integer({
      description: "How many of the 256 shards this node owns, if every node is active.",
    }),
  ),
});
export type Readiness = Static<typeof Readiness>;

/** The state of a cluster node. */
export type NodeState = Required<Pick<Readiness, "node" | "lease" | "database" | "standby">> & Pick<Readiness, "parts">;
