// The verbs that reach into a workspace over the private network.
import type { Verb } from "../verb.ts";
import { CONNECTION } from "./client.ts";

const common = { details: CONNECTION, names: "workspace" } as const;

export const NETWORK: readonly Verb[] = [
  {
    ...common,
    name: "ssh",
    help: "Open a shell in a workspace, or run a command there, over SSH.",
    usage:
      "WORKSPACE[.AGENT] [--env NAME=VALUE]... [--container NAME] [--container-user NAME] [--forward-agent] [--stdio] [settings] [-- COMMAND]",
    load: () => import("../client/network/ssh.ts"),
  },
  {
    name: "config-ssh",
    details: CONNECTION,
    help: "Let ssh, scp, rsync, git and editors reach workspaces as slipway.NAME.",
    usage: "[--file FILE] [--prefix slipway.] [--option NAME=VALUE]... [--dry-run] [--remove] [settings]",
    load: () => import("../client/network/config-ssh.ts"),
  },
  {
    ...common,
    name: "port-forward",
    help: "Lead ports of this machine to ports of a workspace.",
    usage: "WORKSPACE[.AGENT] [--tcp [BIND:]LOCAL[:REMOTE]]... [--udp [BIND:]LOCAL[:REMOTE]]... [settings]",
    load: () => import("../client/network/port-forward.ts"),
  },
  {
    ...common,
    name: "ping",
    help: "Say how long the way to a workspace and back takes.",
    usage: "WORKSPACE[.AGENT] [--count N] [--json] [settings]",
    load: () => import("../client/network/ping.ts"),
  },
  {
    ...common,
    name: "speedtest",
    help: "Measure what the network carries to or from a workspace.",
    usage: "WORKSPACE[.AGENT] [--direction down|up] [--time 5s] [--json] [settings]",
    load: () => import("../client/network/speedtest.ts"),
  },
];
