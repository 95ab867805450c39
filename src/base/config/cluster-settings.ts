// Settings of a server in a cluster, with PostgreSQL in place of the file in the data directory (docs/cluster.md).
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
    help: "A PostgreSQL database that stores everything instead of the data directory, so that several nodes can form a cluster. Prefer a file, because the URL contains a password.",
    absent: "a single server with its data directory",
    secret: true,
  }),
  encryption_key: optional(text, {
    group: "Cluster",
    help: "The key that encrypts secrets in the database: 64 hexadecimal digits, the same on all nodes. Create one with `openssl rand -hex 32`. Prefer a file.",
    absent: "encryption.key in the data directory, created at the first start",
    secret: true,
  }),
  node_address: optional(address, {
    group: "Cluster",
    help: "The address where other nodes of the cluster reach this one. It is also the node's name.",
    absent: "the name of this machine and the port of address",
  }),
  cluster_lease: setting(duration(2000, 60_000), 6000, {
    group: "Cluster",
    help: "How long other nodes wait before they take over from a node that crashed or hangs. The same on all nodes.",
  }),
  cluster_active: setting(choice("one", "every"), "one", {
    group: "Cluster",
    help: "Whether one node is active while the others stand by, or all nodes share the work. The same on all nodes.",
  }),
  cluster_reads: setting(choice("active", "every"), "active", {
    group: "Cluster",
    help: "Which nodes serve read-only requests: the active one, or every node, even while none is active. Other requests are forwarded to the active node.",
  }),
};
