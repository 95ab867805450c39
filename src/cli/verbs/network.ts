// The verbs that reach into a workspace over the private network.
import { group } from "../group.ts";
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
      "WORKSPACE[.AGENT] [--env NAME=VALUE]... [--container NAME] [--container-user NAME] [--forward-agent] [--wait yes|no|auto] [--stdio] [settings] [-- COMMAND]",
    details: () =>
      [
        "--wait yes|no|auto      wait for startup scripts first (auto: as the template says)",
        "--disable-autostart     do not start a workspace that is stopped",
        "--stdio                 pass the connection on, for ProxyCommand of OpenSSH",
        "--ssh-host-prefix TEXT  the workspace is named by a host that begins so, such as coder-vscode.HOST--alice--dev",
        "--usage-app NAME        tell the server which editor this is for: vscode, jetbrains, ssh, reconnecting-pty, disable",
        "--network-info-dir DIR  write <pid of ssh>.json with latency and throughput every 3 seconds",
        "--log-dir DIR           write a log of the connection; --verbose, -v says the same on standard error",
        "",
        CONNECTION(),
      ].join("\n"),
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
    usage: "WORKSPACE[.AGENT] [--direction down|up] [--time 5s] [--output json|table] [settings]",
    load: () => import("../client/network/speedtest.ts"),
  },
  {
    name: "netcheck",
    area: "workspaces",
    details: CONNECTION,
    help: "Check the way to the server and its relay; prints JSON.",
    usage: "[settings]",
    load: () => import("../client/network/netcheck.ts"),
  },
  {
    name: "vscodessh",
    area: "plumbing",
    help: "Be ProxyCommand of OpenSSH for older versions of VS Code's plug-in.",
    usage: "HOST [--network-info-dir DIR] [--log-dir DIR] [--session-token-file FILE] [--url-file FILE] [--verbose]",
    load: () => import("../client/network/vscodessh.ts"),
  },
  group({
    name: "support",
    area: "workspaces",
    help: "Collect diagnostics of one workspace, without secrets, in one file.",
    details: CONNECTION,
    words: [
      {
        name: "bundle",
        names: "workspace",
        usage: "WORKSPACE [--output-file FILE.zip] [--yes]",
        help: "Writes the workspace, its builds, logs and the state of the network into a zip file; `slipway support-bundle` is about the server.",
        load: () => import("../client/support/workspace.ts"),
      },
    ],
  }),
];
