// The systemd service that runs the program: its name, settings and state.
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { toVariableName } from "#base/config/setting.ts";
import { UpgradeError } from "./error.ts";

const PROPERTIES = [
  "LoadState",
  "ActiveState",
  "MainPID",
  "NRestarts",
  "ExecStart",
  "Environment",
  "EnvironmentFiles",
] as const;
/**
 * The variables that the upgrade reads from the running server. Not all of them: the server has erased secrets from its environment, so its
 * other settings may look invalid.
 */
const RELEVANT_VARIABLES: ReadonlySet<string> = new Set(
  [
    ...["config", "data_dir", "address", "allowed_hosts", "tls_cert_file", "tls_key_file", "database_url"],
    ...["database_url_file", "backup_dir", "backup_rate_mb", "release_url", "release_key"],
  ].map((key) => toVariableName(key)),
);

type State = Record<(typeof PROPERTIES)[number], string>;

/** Once systemd has restarted the unit this often, the service counts as failed. */
const FAILED_AFTER_RESTARTS = 3;

export type Service = {
  readonly unit: string;
  readonly isRunning: boolean;
  /** Where the server's settings come from: arguments and variables of the running process, or of the unit if it is not running. */
  readonly settings: { readonly argv: readonly string[]; readonly env: Readonly<Record<string, string>> } | undefined;
};

/** Returns the unit that starts this program, or undefined. */
export const findService = async (unit: string, program: string): Promise<Service | undefined> => {
  const state = await readState(unit);
  if (state === undefined || state.LoadState !== "loaded") return undefined;
  const [, path] = /path=(\S+)/.exec(state.ExecStart) ?? [];
  if (path === undefined || !existsSync(path) || realpathSync(path) !== program) return undefined;
  const pid = Number(state.MainPID);
  const isRunning = state.ActiveState === "active" && pid > 0;
  return { unit, isRunning, settings: isRunning ? readProcessSettings(pid) : readUnitSettings(state) };
};

/** Runs a systemctl action. Throws UpgradeError if systemd refuses. */
export const runSystemctl = async (unit: string, action: "restart" | "start" | "stop"): Promise<void> => {
  const child = Bun.spawn(["systemctl", action, unit], { stdio: ["ignore", "ignore", "pipe"] });
  const message = (await child.stderr.text()).trim();
  if ((await child.exited) !== 0) throw new UpgradeError(`systemctl ${action} ${unit}: ${message}`);
};

/** True if systemd has given up on the unit, or keeps restarting it. `restartsBefore` is its earlier restart count. */
export const hasGivenUp = async (unit: string, restartsBefore: number): Promise<boolean> => {
  const state = await readState(unit);
  return (
    state !== undefined &&
    (state.ActiveState === "failed" || Number(state.NRestarts) - restartsBefore >= FAILED_AFTER_RESTARTS)
  );
};

/** Returns how often systemd has restarted the unit automatically. */
export const countRestarts = async (unit: string): Promise<number> => Number((await readState(unit))?.NRestarts ?? 0);

const readState = async (unit: string): Promise<State | undefined> => {
  if (Bun.which("systemctl") === null) return undefined;
  const child = Bun.spawn(["systemctl", "show", unit, `--property=${PROPERTIES.join(",")}`], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const text = await child.stdout.text();
  if ((await child.exited) !== 0) return undefined;
  const entries = text.split("\n").map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]);
  return Object.fromEntries([
    ...PROPERTIES.map((name) => [name, ""]),
    ...entries.filter(([name]) => name !== ""),
  ]) as State;
};

const readProcessSettings = (pid: number): Service["settings"] => {
  try {
    const readProcFile = (name: string): string[] =>
      readFileSync(`/proc/${pid}/${name}`, "utf8").split("\0").filter(Boolean);
    return { argv: readArguments(readProcFile("cmdline")), env: readVariables(readProcFile("environ")) };
  } catch {
    return undefined;
  }
};

/** Reads the unit of a service that is not running: `argv[]=/usr/bin/slipway serve --data-dir=... ;`, variables, and files of variables. */
const readUnitSettings = ({ ExecStart, Environment, EnvironmentFiles }: State): Service["settings"] => {
  const [, command = ""] = /argv\[\]=(.*?) ;/.exec(ExecStart) ?? [];
  const files = [...EnvironmentFiles.matchAll(/(\/\S+) \(/g)]
    .map(([, path = ""]) => path)
    .filter((path) => existsSync(path));
  const lines = files.flatMap((path) => readFileSync(path, "utf8").split("\n"));
  const words = [...Environment.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
  return { argv: readArguments(command.split(" ")), env: readVariables([...words, ...lines]) };
};

const readArguments = (command: readonly string[]): string[] => command.slice(command.indexOf("serve") + 1);

const readVariables = (entries: readonly string[]): Record<string, string> =>
  Object.fromEntries(entries.map(parseVariable).filter(([name]) => RELEVANT_VARIABLES.has(name)));

const parseVariable = (entry: string): [name: string, value: string] => {
  const at = entry.indexOf("=");
  const value = entry.slice(at + 1).trim();
  return [entry.slice(0, at).trim(), value.replace(/^(["'])(.*)\1$/, "$2")];
};
