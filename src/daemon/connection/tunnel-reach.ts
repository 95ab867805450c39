// The services of the workspace that can be reached through the server's tunnel and the private network: terminals, the HTTP API, SSH, and
// the workspace's own ports. Starts with the first manifest and ends with the daemon.
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { getOwnBinary } from "#base/program.ts";
import type { Random } from "#base/random.ts";
import { finishesWithin } from "#base/retry.ts";
import type { Manifest } from "#src/wire/gen/agent_pb.ts";
import { AGENT_PORT, pipe, WireError } from "#src/wire/index.ts";
import type { AgentToken } from "../agent-token.ts";
import { Checkpoints } from "../checkpoints/checkpoints.ts";
import { CodingAgentPrograms } from "../coding-agents/programs.ts";
import { Containers } from "../containers/containers.ts";
import { listDeclaredDevcontainers } from "../containers/declared.ts";
import { DevcontainerCli } from "../containers/devcontainers-cli.ts";
import { ContainerEngine, findEngineAddress } from "../containers/engine.ts";
import { SubAgents } from "../containers/sub-agents.ts";
import type { WorkspaceContext } from "../context/context.ts";
import type { WorkspaceMcp } from "../context/mcp.ts";
import { Desktop } from "../desktop/desktop.ts";
import { type Environment, expandPath, resolveFolder, resolveStateFolder, toId } from "../environment.ts";
import { GitRecord } from "../git/record.ts";
import { GitWatches } from "../git/watch.ts";
import { HookPrograms } from "../hooks/run.ts";
import { type HttpApi, serveHttpApi } from "../http/http.ts";
import { Processes } from "../http/processes.ts";
import { type JoinedNetwork, joinNetwork } from "../network/network.ts";
import { ListeningPorts } from "../ports.ts";
import type { ProcessGroups } from "../scripts/groups.ts";
import { type Logs, OWN_SOURCE } from "../scripts/logs.ts";
import { SshServer } from "../ssh/server.ts";
import { TerminalSessions } from "../terminal/sessions.ts";
import type { Connection } from "./connection.ts";
import { ConnectionReports } from "./connection-reports.ts";
import type { Reports } from "./reports.ts";
import type { OpenConnections } from "./stats.ts";
import { type CountedStream, runTunnel, type TunnelServices } from "./tunnel.ts";
import { connectSocket } from "./tunnel-socket.ts";

/** The options shared by everything that one daemon runs for its workspace. */
export type DaemonOptions = {
  manifest: Manifest;
  url: URL;
  token: AgentToken;
  env: Readonly<Record<string, string | undefined>>;
  clock: Clock;
  random: Random;
  connection: Connection;
  /** Tells the daemon to end. */
  shutDown(): void;
  /** Tells the daemon that secrets have changed on the server. */
  renewSecrets(): void;
  /** Hands a new token of the agent to the daemon. */
  renewToken(token: string): void;
};

export type ReachOptions = DaemonOptions & {
  reports: Reports;
  logs: Logs;
  groups: ProcessGroups;
  /** The environment of the workspace's programs. */
  programs: Environment;
  context: Pick<WorkspaceContext, "current">;
  mcp: Pick<WorkspaceMcp, "call">;
};

/** How long the removal of containers and the agents in them may delay the end of the workspace. */
const CONTAINERS_TIMEOUT_MS = 8_000;

export class Reach {
  readonly #clock: Clock;
  readonly #stopping = new AbortController();
  readonly containers: Containers;
  readonly #terminals: TerminalSessions;
  readonly #api: HttpApi | undefined;
  readonly #ssh: SshServer;
  readonly #running: Promise<void>;
  #network: JoinedNetwork | undefined;
  #streams = 0;
  #moved_bytes = 0;

  constructor(options: ReachOptions) {
    const {
      manifest,
      url,
      token,
      env: daemonEnv,
      connection,
      clock,
      random,
      groups,
      context,
      mcp,
      shutDown,
      renewSecrets,
      renewToken,
    } = options;
    this.#clock = clock;
    const env = options.programs;
    const directory = resolveFolder(manifest.directory, daemonEnv);
    const agent_id = toId(manifest.agentId);
    const motd = manifest.motdPath === "" ? "" : expandPath(manifest.motdPath, daemonEnv, directory);
    const hidden = findHiddenPorts(manifest, url);
    const ports = new ListeningPorts({
      hidden,
      agent_id,
      uid: process.getuid?.() ?? -1,
    });
    const connectEngine = (): ContainerEngine | undefined => {
      const address = findEngineAddress(env);
      return address && new ContainerEngine(address, clock);
    };
    this.#terminals = new TerminalSessions({ clock, groups, agent_id, env, directory, engine: connectEngine });
    const desktop = new Desktop({ clock, groups, env });
    // An agent inside a container starts no agents in other containers. Without a compiled program, there is nothing to copy into a
    // container.
    const program = manifest.parentId === undefined ? getOwnBinary() : undefined;
    const subAgents =
      program === undefined ? undefined : new SubAgents({ clock, connection, url, engine: connectEngine, program });
    this.containers = new Containers({
      clock,
      directory,
      engine: connectEngine,
      declared: () =>
        listDeclaredDevcontainers(manifest, (path, base = directory) => expandPath(path, daemonEnv, base)),
      devcontainers: new DevcontainerCli({
        clock,
        groups,
        env,
        onLine: (level, output) => options.logs.getSource(OWN_SOURCE).add({ at: clock.now(), level, output }),
      }),
      agents: subAgents,
    });
    this.#api = tryServeHttpApi({
      ports: () => ports.list(),
      processes: new Processes({ clock, groups, env, display: () => desktop.env }),
      codingAgents: new CodingAgentPrograms({
        clock,
        groups,
        env,
        directory,
        state: join(resolveStateFolder(env), "coding-agents"),
        hidePort: (port) => void hidden.add(port),
      }),
      containers: this.containers,
      git: new GitWatches({
        clock,
        groups,
        env,
        folder: () => directory,
        record: new GitRecord(join(resolveStateFolder(env), "git")),
      }),
      hooks: new HookPrograms({ clock, groups, env, directory }),
      desktop,
      clock,
      checkpoints: new Checkpoints({
        clock,
        groups,
        env,
        folder: () => directory,
        state: join(resolveStateFolder(env), "checkpoints"),
      }),
      context,
      mcp,
      shutDown,
      renewSecrets,
      renewToken: (token) => {
        renewToken(token);
        void subAgents?.endDeleted();
        return subAgents?.listCreated() ?? [];
      },
      debug: {
        manifest,
        roundTrip: () => connection.measureRoundTrip(),
        open: () => this.open,
        remotes: () => this.#network?.shown ?? [],
      },
      findTerminalFolder: (terminal) => this.#terminals.getFolder(terminal),
      resolve: (path) => expandPath(path, daemonEnv, directory),
    });
    const reports = new ConnectionReports({ reports: options.reports, clock });
    this.#ssh = new SshServer({ clock, groups, env, directory, motd, reports, engine: connectEngine });
    const reach = { url, clock, random, services: this.#createServices(clock), countStream: () => this.#countStream() };
    this.#running = runTunnel({ ...reach, token, signal: this.#stopping.signal });
    // The agent's addresses in the private network are derived from its ID.
    if (agent_id !== "") {
      this.#network = joinNetwork({
        ...reach,
        connection,
        agent_id,
        ssh: this.#ssh,
        reports,
        signal: this.#stopping.signal,
      });
    }
  }

  get open(): OpenConnections {
    const [streams, moved_bytes] = [this.#streams, this.#moved_bytes];
    const { clients: terminals, typed } = this.#terminals;
    const { sessions } = this.#ssh;
    const countIdleSessions = () => this.#ssh.countIdleSessions();
    return { terminals, streams, moved_bytes, sessions, typed, countIdleSessions };
  }

  /**
   * Ends the terminals first, so that their viewers are notified, and then the tunnel. `stays`: the workspace continues with another agent.
   */
  async end({ stays = false }: { stays?: boolean } = {}): Promise<void> {
    await this.#terminals.endAll();
    await finishesWithin(this.#clock, CONTAINERS_TIMEOUT_MS, this.containers.end(!stays));
    this.#stopping.abort();
    await this.#running;
    await this.#api?.close();
  }

  #countStream(): CountedStream {
    this.#streams += 1;
    return {
      moved: (bytes) => {
        this.#moved_bytes += bytes;
      },
      ended: () => {
        this.#streams -= 1;
      },
    };
  }

  #createServices(clock: Clock): TunnelServices {
    return new Map([
      [AGENT_PORT.terminal, async () => (stream) => this.#terminals.serve(stream)],
      [
        AGENT_PORT.http,
        async () => {
          if (!this.#api) throw new WireError("refused", "The agent's HTTP API could not be started.");
          const socket = await connectSocket({ unix: this.#api.socket }, clock);
          return (stream) => pipe(stream, socket);
        },
      ],
    ]);
  }
}

const tryServeHttpApi = (options: Parameters<typeof serveHttpApi>[0]): HttpApi | undefined => {
  try {
    return serveHttpApi(options);
  } catch (error) {
    log("daemon").error("the HTTP API cannot be served in {folder}: {error}", { folder: tmpdir(), error });
    return undefined;
  }
};

const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** Returns the ports of the agent's own apps (facts/platform 5.7), and the server's port if it runs in the same place as the workspace. */
const findHiddenPorts = ({ apps }: Manifest, server: URL): Set<number> => {
  const urls = apps.flatMap(({ url, healthcheck }) => [url, healthcheck?.url ?? ""]).filter((one) => URL.canParse(one));
  const hidden = new Set(urls.map((one) => getPort(new URL(one))));
  if (LOOPBACK.has(server.hostname)) hidden.add(getPort(server));
  return hidden;
};

const getPort = ({ port, protocol }: URL): number => Number(port) || (protocol === "https:" ? 443 : 80);
