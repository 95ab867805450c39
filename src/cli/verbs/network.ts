// The verbs that connect to a workspace over the private network.
import { group } from "../group.ts";
import type { Verb } from "../verb.ts";
import { CONNECTION } from "./client.ts";

const common = { details: CONNECTION, completes: "workspace" } as const;

export const NETWORK: readonly Verb[] = [
  {
    ...common,
    name: "ssh",
    area: "workspaces",
    help: "Open a shell or run a command in a workspace over SSH.",
    usage:
      "WORKSPACE[.AGENT] [--env NAME=VALUE]... [--container NAME] [--container-user NAME] [--forward-agent] [--wait yes|no|auto] [--stdio] [settings] [-- COMMAND]",
    details: () =>
      [
        "--wait yes|no|auto      wait for startup scripts first (auto: as the template specifies)",
        "--disable-autostart     do not start a workspace that is stopped",
        "--stdio                 forward the connection, for OpenSSH's ProxyCommand",
        "--ssh-host-prefix TEXT  prefix of host names that name a workspace, such as coder-vscode.HOST--alice--dev",
        "--usage-app NAME        tell the server which editor this is for: vscode, jetbrains, ssh, reconnecting-pty, disable",
        "--network-info-dir DIR  write <pid of ssh>.json with latency and throughput every 3 seconds",
        "--log-dir DIR           write a connection log; --verbose, -v logs to standard error",
        "",
        CONNECTION(),
      ].join("\n"),
    load: () => import("../client/network/ssh.ts"),
  },
  {
    name: "config-ssh",
    area: "workspaces",
    details: CONNECTION,
    help: "Configure OpenSSH so that ssh, scp, rsync, git and editors reach workspaces as slipway.NAME.",
    usage: "[--file FILE] [--prefix slipway.] [--option NAME=VALUE]... [--dry-run] [--remove] [settings]",
    load: () => import("../client/network/config-ssh.ts"),
  },
  {
    ...common,
    name: "port-forward",
    area: "workspaces",
    help: "Forward local ports to a workspace. A connection to one of them starts the workspace when it has stopped.",
    usage:
      "WORKSPACE[.AGENT] [[BIND:]LOCAL[:REMOTE]]... [--tcp [BIND:]LOCAL[:REMOTE]]... [--udp [BIND:]LOCAL[:REMOTE]]... [--disable-autostart] [settings]",
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
    usage: "WORKSPACE[.AGENT] [--direction down|up] [--time 5s] [--output json|table] [settings]",
    load: () => import("../client/network/speedtest.ts"),
  },
  {
    name: "netcheck",
    area: "workspaces",
    details: CONNECTION,
    help: "Check the connection to the server and its relay; prints JSON.",
    usage: "[settings]",
    load: () => import("../client/network/netcheck.ts"),
  },
  {
    name: "vscodessh",
    area: "plumbing",
    help: "Act as OpenSSH's ProxyCommand for older versions of the VS Code extension.",
    usage: "HOST [--network-info-dir DIR] [--log-dir DIR] [--session-token-file FILE] [--url-file FILE] [--verbose]",
    load: () => import("../client/network/vscodessh.ts"),
  },
  group({
    name: "support",
    area: "workspaces",
    help: "Collect diagnostics for a workspace, without secrets, into one file.",
    details: CONNECTION,
    subcommands: [
      {
        name: "bundle",
        completes: "workspace",
        usage: "WORKSPACE [--output-file FILE.zip] [--yes]",
        help: "Writes the workspace, its builds, logs and network state to a zip file. For the server, use `slipway support-bundle`.",
        load: () => import("../client/support/workspace.ts"),
      },
    ],
  }),
];
