// `slipway ssh WORKSPACE[.AGENT] [-- COMMAND…]`: a shell, or a command whose exit code is returned, over the private network. With
// `--stdio`, the connection itself, for OpenSSH and for editors that start it (rules CN-2, CN-3, CN-7).
import { usageError } from "#base/usage-error.ts";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import type { NetworkPeer } from "#src/tailnet/index.ts";
import { AGENT_PORT, ConnectionUse } from "#src/wire/index.ts";
import { type Arguments, readArguments } from "../../arguments.ts";
import { promptIfMissing, takeOneWord } from "../../missing-arguments.ts";
import { getStreams } from "../../streams.ts";
import { EXIT, type RunVerb, type VerbInput } from "../../verb.ts";
import { type Remote, withServer } from "../remote.ts";
import { listOwnWorkspaces } from "../workspaces/find.ts";
import { createProxyLog, NetworkInfo, Traffic } from "./editor-files.ts";
import { parseHost } from "./host-names.ts";
import { parseScriptsWait, waitForScripts } from "./scripts.ts";
import { loadSshLibrary, runSshSession } from "./ssh-session.ts";
import { withAgent } from "./target.ts";
import { parseUsageApp, reportUsage } from "./usage.ts";

const VALUES = [
  "host-prefix",
  "ssh-host-prefix",
  "container",
  "container-user",
  "usage-app",
  "network-info-dir",
  "log-dir",
  "wait",
] as const;
const SWITCHES = ["stdio", "forward-agent", "disable-autostart", "verbose"] as const;
const SHAPE = {
  values: VALUES,
  lists: ["env"],
  switches: SWITCHES,
  short: { v: "verbose", A: "forward-agent" },
} as const;

type SshArguments = Arguments<(typeof VALUES)[number], "env", (typeof SWITCHES)[number]>;

export const run: RunVerb = async (input) => {
  const args = readArguments(input.argv, SHAPE);
  const { words, value, has } = args;
  const word = takeOneWord(input, words, "the workspace");
  const prefix = value["ssh-host-prefix"] ?? value["host-prefix"];
  const checked = { wait: parseScriptsWait(value.wait), app: parseUsageApp(value["usage-app"]) };
  return withServer("ssh", input, value, async (remote) => {
    const requested = await promptIfMissing(input, word, "Workspace", () => listOwnWorkspaces(remote.client));
    const name = prefix === undefined ? requested : parseHost(requested, prefix);
    const exitCode = connect(input, remote, name, args, checked);
    // Loaded while the server handles the request.
    if (!has.stdio) void loadSshLibrary();
    return exitCode;
  });
};

type CheckedOptions = { wait: ReturnType<typeof parseScriptsWait>; app: ReturnType<typeof parseUsageApp> };

/** Connects to the named workspace and returns the exit code. */
export const connect = (
  input: VerbInput,
  remote: Remote,
  name: string,
  { value, has, list, afterDashes }: SshArguments,
  { wait, app }: CheckedOptions,
): Promise<number> => {
  const log = createProxyLog(input, value["log-dir"]);
  log(`connecting to ${name} at ${remote.client.url.origin}`);
  const isVerbose = has.verbose || input.isVerbose === true;
  const logLine = (line: string): void => {
    log(line);
    // OpenSSH shows the ProxyCommand's standard error.
    if (isVerbose && value["log-dir"] === undefined) input.printError(`slipway ssh: ${line}\n`);
  };
  const options = {
    mayStart: !has["disable-autostart"],
    reason: app === "vscode" ? "vscode_connection" : app === "jetbrains" ? "jetbrains_connection" : "ssh_connection",
  } as const;
  const runSession = async ({ workspace, agent_id, joined }: Parameters<Parameters<typeof withAgent>[3]>[0]) => {
    logLine(`joined the network for the agent ${agent_id} of ${workspace.name}`);
    await waitForScripts(input, remote, workspace, agent_id as WorkspaceAgent["id"], wait);
    const use = has.stdio ? new ConnectionUse(input.clock) : undefined;
    using _usage = reportUsage(input, remote.client, { workspace_id: workspace.id, agent_id, app, use });
    if (!use) {
      return runSshSession(input, joined.peer, agent_id, {
        command: afterDashes?.join(" "),
        env: [...list.env, ...toContainerVariables(value)],
        forwardsAgent: has["forward-agent"],
      });
    }
    const traffic = new Traffic(use);
    const folder = value["network-info-dir"];
    const connection = { client: remote.client, peer: joined.peer, agent_id, traffic };
    using _info = folder === undefined ? undefined : new NetworkInfo(input, connection, folder);
    // OpenSSH sends SIGHUP to its ProxyCommand when it ends.
    const hungUp = new Promise<number>((done) => input.onReload?.(() => done(EXIT.ok)));
    return await Promise.race([pipeStdio(input, joined.peer, agent_id, traffic), hungUp]);
  };
  return withAgent(input, remote, name, runSession, options).then(
    (code) => {
      logLine(`ended with exit code ${code}`);
      return code;
    },
    (error) => {
      logLine(`failed: ${error instanceof Error ? error.message : String(error)}`);
      throw error;
    },
  );
};

/** Returns the variables that select a container for the session. Throws UsageError for a user without a container. */
const toContainerVariables = ({
  container,
  "container-user": user,
}: Readonly<Record<string, string | undefined>>): string[] => {
  if (container === undefined && user !== undefined) throw usageError("--container-user", "needs --container");
  return [
    ...(container === undefined ? [] : [`SLIPWAY_CONTAINER=${container}`]),
    ...(user === undefined ? [] : [`SLIPWAY_CONTAINER_USER=${user}`]),
  ];
};

/** Copies bytes in both directions until the workspace closes its side, and counts them. */
const pipeStdio = async (
  input: VerbInput,
  peer: NetworkPeer,
  agent_id: string,
  traffic = new Traffic(),
): Promise<number> => {
  const streams = getStreams(input);
  const connection = await peer.dial(agent_id, AGENT_PORT.ssh, input.signal);
  const sending = (async () => {
    for await (const chunk of streams.input()) {
      traffic.addUp(chunk.byteLength);
      await connection.write(chunk);
    }
    await connection.end();
  })();
  // A reader that stops is detected in the other direction.
  sending.catch(() => {});
  for await (const chunk of connection) {
    traffic.addDown(chunk.byteLength);
    await streams.write(chunk);
  }
  return EXIT.ok;
};
