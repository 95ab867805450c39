// The programs that workspaces download to become agents: this program built for their system, from the folder with builds for other
// systems, or the running one (facts/terraform 2.15). Rejects all other names.
import { statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Config } from "#base/config.ts";
import { getOwnBinary } from "#base/program.ts";
import { readSystem } from "#src/provisioners/docker/program.ts";

export const PROGRAM_SYSTEMS = ["linux", "linux-musl", "darwin", "windows"] as const;
export const PROGRAM_MACHINES = ["amd64", "arm64", "armv7"] as const;

type Digests = { readonly sha256: string; readonly sha1: string };
export type AgentProgram = Digests & { readonly path: string; readonly size: number };

/** Cache of digests by path, size and modification time, so that a program is read only once. */
const digests = new Map<string, Promise<Digests>>();
const MAX_DIGESTS = 64;

type Settings = Pick<Config, "agent_binary" | "agent_binaries">;

/** Returns `linux-musl-amd64` for `slipway-linux-musl-amd64` or `windows-arm64` for `coder-windows-arm64.exe`; undefined for other names. */
const parseSystem = (name: string): string | undefined => {
  const [, system] = /^(?:slipway|coder)-([a-z]+(?:-musl)?-[a-z0-9]+)(?:\.exe)?$/.exec(name) ?? [];
  return PROGRAM_SYSTEMS.some((os) => PROGRAM_MACHINES.some((arch) => system === `${os}-${arch}`)) ? system : undefined;
};

/** Returns the program with this name; undefined when the server has none for that system. */
export const findAgentProgram = async (settings: Settings, name: string): Promise<AgentProgram | undefined> => {
  const system = parseSystem(name);
  const path = system === undefined ? undefined : findPath(settings, system);
  return path === undefined ? undefined : loadProgram(path);
};

/** Returns all available programs by download name. */
export const listAgentPrograms = async (settings: Settings): Promise<Map<string, AgentProgram>> => {
  const found = new Map<string, AgentProgram>();
  for (const os of PROGRAM_SYSTEMS) {
    for (const arch of PROGRAM_MACHINES) {
      const name = `slipway-${os}-${arch}${os === "windows" ? ".exe" : ""}`;
      const program = await findAgentProgram(settings, name);
      if (program) found.set(name, program);
    }
  }
  return found;
};

const findPath = ({ agent_binary, agent_binaries }: Settings, system: string): string | undefined => {
  const own = getOwnBinary();
  const folder = agent_binaries ?? (own === undefined ? undefined : dirname(own));
  if (folder !== undefined) {
    const buildForSystem = join(folder, `slipway-${system}${system.startsWith("windows") ? ".exe" : ""}`);
    if (isFile(buildForSystem)) return buildForSystem;
  }
  const fallback = agent_binary ?? own;
  return fallback !== undefined && isFile(fallback) && readSystem(fallback) === system ? fallback : undefined;
};

const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() === true;

const loadProgram = async (path: string): Promise<AgentProgram> => {
  const { size, mtimeMs } = statSync(path);
  const key = `${path}\0${size}\0${mtimeMs}`;
  const known = digests.get(key) ?? loadDigests(path);
  if (digests.size >= MAX_DIGESTS) digests.clear();
  digests.set(key, known);
  return { path, size, ...(await known) };
};

const loadDigests = async (path: string): Promise<Digests> => {
  const [sha256, sha1] = [new Bun.CryptoHasher("sha256"), new Bun.CryptoHasher("sha1")];
  for await (const chunk of Bun.file(path).stream()) {
    sha256.update(chunk);
    sha1.update(chunk);
  }
  return { sha256: sha256.digest("hex"), sha1: sha1.digest("hex") };
};
