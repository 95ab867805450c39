// A PostgreSQL primary and its standby with streaming replication, which a test kills, promotes and restarts. They run as the user
// `postgres`, with the programs of the Debian package or of the folder POSTGRES_BIN. The shared server of `.ci/postgres` is not used.
import { appendFileSync, chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SQL } from "bun";
import { tempDirectory } from "../server.ts";
import { until } from "../until.ts";
import type { NetworkLocation } from "./networks.ts";

const PROGRAMS_FOLDER = "/usr/lib/postgresql";
const SETTINGS = {
  listen_addresses: "*",
  max_connections: "100",
  autovacuum: "off",
  wal_sender_timeout: "2s",
  wal_receiver_timeout: "2s",
};

/** Returns the folder of the programs that `.ci/postgres` would use: the newest installed version. */
const findPrograms = (): string => {
  const configured = process.env.POSTGRES_BIN;
  if (configured) return configured;
  const [newest] = readdirSync(PROGRAMS_FOLDER).sort((a, b) => Number(b) - Number(a));
  return join(PROGRAMS_FOLDER, newest ?? "", "bin");
};

const runAsPostgres = (program: string, args: readonly string[], prefix: readonly string[] = []): Promise<void> => {
  const through = [...prefix, "setpriv", "--reuid", "postgres", "--regid", "postgres", "--init-groups"];
  return runToEnd([...through, join(findPrograms(), program), ...args]);
};

const runToEnd = async (command: readonly string[]): Promise<void> => {
  const child = Bun.spawn([...command], {
    cwd: "/",
    env: { PATH: process.env.PATH ?? "", LC_ALL: "C" },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const errors = await new Response(child.stderr).text();
  if ((await child.exited) !== 0)
    throw new Error(`${command.join(" ")} ended with ${child.exitCode}: ${errors.slice(-2000)}`);
};

const findFreePort = (): number => {
  const probe = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = probe;
  probe.stop(true);
  return port;
};

type ServerPlace = Pick<NetworkLocation, "address" | "through">;
const HERE: ServerPlace = { address: "127.0.0.1", through: [] };

export class PostgresServer {
  readonly data: string;
  readonly host: string;
  readonly port = findFreePort();
  readonly #through: readonly string[];

  constructor(folder: string, name: string, { address, through }: ServerPlace) {
    this.data = join(folder, name);
    this.host = address;
    this.#through = through;
  }

  /** Returns the URL of one of the server's databases. */
  url(database = "postgres"): string {
    return `postgres://postgres@${this.host}:${this.port}/${database}`;
  }

  async start(): Promise<void> {
    const settings = Object.entries({ ...SETTINGS, port: String(this.port), unix_socket_directories: this.data });
    const options = settings.map(([name, value]) => `-c ${name}='${value}'`).join(" ");
    const log = join(this.data, "server.log");
    // The last processes of a killed server prevent a restart for a moment.
    const args = ["--pgdata", this.data, "--log", log, "--wait", "--options", options, "start"];
    let lastError: unknown;
    const isUp = (): Promise<boolean> =>
      runAsPostgres("pg_ctl", args, this.#through).then(
        () => true,
        (error: unknown) => {
          lastError = error;
          return false;
        },
      );
    await until(isUp, { what: "PostgreSQL to start" }).catch(() => {
      throw lastError;
    });
  }

  /** Kills the whole server, as if its machine had failed. */
  kill(): void {
    for (const pid of this.#pids()) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // The process has already ended.
      }
    }
  }

  /** Pauses or resumes all processes of the server. */
  signal(name: "SIGSTOP" | "SIGCONT"): void {
    for (const pid of this.#pids()) process.kill(pid, name);
  }

  promote(): Promise<void> {
    return runAsPostgres("pg_ctl", ["--pgdata", this.data, "--wait", "promote"]);
  }

  async query<T>(text: string): Promise<T[]> {
    await using sql = new SQL(this.url(), { max: 1 });
    return [...((await sql.unsafe(text)) as T[])];
  }

  /** Returns the process IDs of the server and its children. */
  #pids(): number[] {
    const file = join(this.data, "postmaster.pid");
    if (!existsSync(file)) return [];
    const serverPid = Number(readFileSync(file, "utf8").split("\n")[0]);
    const children = readdirSync("/proc").filter((name) => {
      if (!/^\d+$/.test(name)) return false;
      try {
        return (
          Number(
            readFileSync(`/proc/${name}/stat`, "latin1")
              .replace(/^.*\) /s, "")
              .split(" ")[1],
          ) === serverPid
        );
      } catch {
        return false;
      }
    });
    return [serverPid, ...children.map(Number)];
  }
}

export type PostgresPair = AsyncDisposable & {
  readonly primary: PostgresServer;
  readonly standby: PostgresServer;
  /** One URL with both hosts. */
  readonly url: string;
};

/**
 * Creates the standby as a copy of the primary's files. Neither is running yet, so the files are consistent and pg_basebackup, which the
 * programs from npm lack, is not needed.
 */
const copyToStandby = async (primary: PostgresServer, standby: PostgresServer): Promise<void> => {
  await runToEnd(["cp", "--archive", primary.data, standby.data]);
  const primaryInfo = `host=${primary.host} port=${primary.port} user=postgres application_name=standby`;
  appendFileSync(join(standby.data, "postgresql.auto.conf"), `primary_conninfo = '${primaryInfo}'\n`);
  writeFileSync(join(standby.data, "standby.signal"), "");
};

/** `synchronous`: a commit waits for the standby. `places`: where the two run. */
export const startPair = async ({
  synchronous = true,
  places = [HERE, HERE],
}: {
  synchronous?: boolean;
  places?: readonly [ServerPlace, ServerPlace];
} = {}): Promise<PostgresPair> => {
  const temp = tempDirectory();
  const primary = await newServer(temp.path, "primary", places[0]);
  const standby = new PostgresServer(temp.path, "standby", places[1]);
  await copyToStandby(primary, standby);
  await primary.start();
  await standby.start();
  if (synchronous) {
    await primary.query("alter system set synchronous_standby_names = 'standby'");
    await primary.query("select pg_reload_conf()");
  }
  const state = synchronous ? "sync" : "async";
  await until(
    async () =>
      (await primary.query(`select 1 from pg_stat_replication where sync_state = '${state}' and state = 'streaming'`))
        .length > 0,
    { what: "the standby to follow" },
  );
  return {
    primary,
    standby,
    url: `postgres://postgres@${primary.host}:${primary.port},${standby.host}:${standby.port}/postgres`,
    [Symbol.asyncDispose]: () => removeServers(temp, [primary, standby]),
  };
};

/** Starts one server without a standby. */
export const startSingle = async (): Promise<AsyncDisposable & { readonly server: PostgresServer }> => {
  const temp = tempDirectory();
  const server = await newServer(temp.path, "alone", HERE);
  await server.start();
  return { server, [Symbol.asyncDispose]: () => removeServers(temp, [server]) };
};

const newServer = async (folder: string, name: string, location: ServerPlace): Promise<PostgresServer> => {
  chmodSync(folder, 0o777);
  const server = new PostgresServer(folder, name, location);
  const options = ["--auth", "trust", "--username", "postgres", "--encoding", "utf8", "--locale", "C", "--no-sync"];
  await runAsPostgres("initdb", ["--pgdata", server.data, ...options]);
  await Bun.write(
    join(server.data, "pg_hba.conf"),
    "local all all trust\nhost all all all trust\nhost replication all all trust\n",
  );
  return server;
};

const removeServers = async (temp: Disposable, servers: readonly PostgresServer[]): Promise<void> => {
  for (const server of servers) server.kill();
  await until(() => {
    try {
      temp[Symbol.dispose]();
      return true;
    } catch {
      return false;
    }
  });
};
