// Settings of a server that is one node of several, with PostgreSQL in place of the file in the data directory (docs/cluster.md).
import { address, choice, duration, matching, text } from "./kinds.ts";
import { optional, setting } from "./setting.ts";

const postgresUrl = matching(
  /^postgres(ql)?:\/\/[^/?\s]+\/[^/?\s]+(\?\S*)?$/,
  "an address such as postgres://user:password@host:5432/database; several hosts are separated by commas",
  "URL",
);

export const CLUSTER_SETTINGS = {
  database_url: optional(postgresUrl, {
    group: "Cluster",
    help: "A PostgreSQL database that holds everything in place of the data directory, so that several servers can stand by for one another. Best in a file of its own.",
    absent: "everything is in the data directory, and there is one server",
    secret: true,
  }),
  encryption_key: optional(text, {
    group: "Cluster",
    help: "The key of what is sealed in the database, 64 hexadecimal digits: the same for all nodes. `openssl rand -hex 32` makes one. Best in a file of its own.",
    absent: "encryption.key in the data directory, made at the first start",
    secret: true,
  }),
  node_address: optional(address, {
    group: "Cluster",
    help: "Where the other nodes of the cluster reach this one. It is also the node's name.",
    absent: "the name of this machine and the port of address",
  }),
  cluster_lease: setting(duration(2000, 60_000), 6000, {
    group: "Cluster",
    help: "How long a node that has died or hangs keeps the others from taking over. The same for all nodes.",
  }),
  cluster_active: setting(choice("one", "every"), "one", {
    group: "Cluster",
    help: "Whether one node works while the others stand by, or every node has its share of the work. The same for all nodes.",
  }),
  cluster_reads: setting(choice("active", "every"), "active", {
    group: "Cluster",
    help: "Which nodes answer what only reads: the active one, or every node, also while none is active. All else is passed on to the active one.",
  }),
};
