// The verbs that reach into a workspace over the private network.
import type { Verb } from "../verb.ts";
import { CONNECTION } from "./client.ts";

const common = { details: CONNECTION, names: "workspace" } as const;

export const NETWORK: readonly Verb[] = [
  {
    ...common,
    name: "ssh",
    area: "workspaces",
    help: "Open a shell in a workspace, or run a command there, over SSH.",
    usage:
      "WORKSPACE[.AGENT] [--env NAME=VALUE]... [--container NAME] [--container-user NAME] [--forward-agent] [--stdio] [settings] [-- COMMAND]",
    load: () => import("../client/network/ssh.ts"),
  },
  {
    name: "config-ssh",
    area: "workspaces",
    details: CONNECTION,
    help: "Let ssh, scp, rsync, git and editors reach workspaces as slipway.NAME.",
    usage: "[--file FILE] [--prefix slipway.] [--option NAME=VALUE]... [--dry-run] [--remove] [settings]",
    load: () => import("../client/network/config-ssh.ts"),
  },
  {
    ...common,
    name: "port-forward",
    area: "workspaces",
    help: "Forward local ports to a workspace.",
    usage: "WORKSPACE[.AGENT] [--tcp [BIND:]LOCAL[:REMOTE]]... [--udp [BIND:]LOCAL[:REMOTE]]... [settings]",
    load: () => import("../client/network/port-forward.ts"),
  },
  {
    ...common,
    name: "ping",
    area: "workspaces",
    help: "Measure the round-trip time to a workspace.",
    usage: "WORKSPACE[.AGENT] [--count N] [--json] [settings]",
    load: () => import("../client/network/ping.ts"),
  },
  {
    ...common,
    name: "speedtest",
    area: "workspaces",
    help: "Measure the throughput to or from a workspace.",
    usage: "WORKSPACE[.AGENT] [--direction down|up] [--time 5s] [--json] [settings]",
    load: () => import("../client/network/speedtest.ts"),
  },
];
