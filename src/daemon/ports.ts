// Lists the listening TCP ports of this user's programs, with the programs' names and whether the workspace started them (facts/platform
// 5.7, rules PT-1 to PT-3). Reads /proc; without it, the list is empty.
import { readdirSync, readlinkSync, statSync } from "node:fs";
import type { ListeningPort } from "#schema/workspaces/listening-port.ts";
import { findAgent, isBelow, readProc, tryOr } from "./own-processes.ts";

export type PortsOptions = {
  /** Ports that are never listed: those of the agent's own apps, and the server's if it is on this machine. */
  hidden: ReadonlySet<number>;
  /** The agent's ID. Programs with another ID belong to another workspace on this machine. */
  agent_id: string;
  uid: number;
};

/** The program that holds a socket. */
type Holder = { readonly name: string; readonly is_own: boolean };

const MIN_PORT = 9;
// biome-ignore format: a table
const COMMON_SERVICES = new Set([
  20, 21, 22, 23, 25, 53, 110, 143, 179, 389, 465, 587, 636, 989, 990, 993, 995, 3306, 3389, 5432, 27017, 27018, 27019, 28017,
]);

/** Scans on every call, but caches the owner of each socket, which is expensive to find. */
export class ListeningPorts {
  readonly #options: PortsOptions;
  /** The program that holds each socket, by inode; undefined if no program of this machine holds it. */
  #holders = new Map<string, Holder | undefined>();

  constructor(options: PortsOptions) {
    this.#options = options;
  }

  /** Returns ports in ascending order, each once. */
  list(): ListeningPort[] {
    const { uid, agent_id } = this.#options;
    const sockets = new Map<string, number>();
    for (const table of ["tcp", "tcp6"]) {
      for (const listener of parseListeners(readProc(`/proc/net/${table}`))) {
        if (listener.uid === uid && this.#isListed(listener.port)) sockets.set(listener.inode, listener.port);
      }
    }
    const holders = new Map([...sockets.keys()].map((inode) => [inode, this.#holders.get(inode)]));
    const unknownInodes = new Set([...sockets.keys()].filter((inode) => !this.#holders.has(inode)));
    for (const { pid, inode } of findOwners(unknownInodes, uid)) {
      const agent = findAgent(pid);
      // Programs of other agents are never listed.
      if (holders.get(inode)?.is_own || (agent !== undefined && agent !== agent_id)) continue;
      const is_own = agent === agent_id || isBelow(pid, process.pid);
      holders.set(inode, { name: readProc(`/proc/${pid}/comm`).trim(), is_own });
    }
    this.#holders = holders;
    const ports = new Map<number, Holder>();
    for (const [inode, port] of sockets) {
      const holder = holders.get(inode);
      if (holder && !ports.get(port)?.is_own) ports.set(port, holder);
    }
    return [...ports]
      .sort(([a], [b]) => a - b)
      .map(([port, { name, is_own }]) => ({ network: "tcp", port, process_name: name, is_own }));
  }

  #isListed(port: number): boolean {
    return port >= MIN_PORT && !COMMON_SERVICES.has(port) && !this.#options.hidden.has(port);
  }
}

export type Listener = { port: number; inode: string; uid: number };

/** Returns the sockets in state LISTEN (0A) from a text in the format of /proc/net/tcp. */
export const parseListeners = (table: string): Listener[] =>
  table
    .split("\n")
    .slice(1)
    .flatMap((line) => {
      const [, local = "", , state, , , , uid, , inode] = line.trim().split(/\s+/);
      const port = Number.parseInt(local.slice(local.lastIndexOf(":") + 1), 16);
      return state === "0A" && inode !== undefined && port > 0 ? [{ port, inode, uid: Number(uid) }] : [];
    });

/** Yields the processes of the user that hold these sockets; a socket may have several. */
function* findOwners(sockets: ReadonlySet<string>, uid: number): Generator<{ pid: number; inode: string }> {
  if (sockets.size === 0) return;
  for (const name of listNames("/proc")) {
    if (!/^\d+$/.test(name) || readOwner(`/proc/${name}`) !== uid) continue;
    for (const fd of listNames(`/proc/${name}/fd`)) {
      const inode = /^socket:\[(\d+)\]$/.exec(readLinkTarget(`/proc/${name}/fd/${fd}`))?.[1];
      if (inode !== undefined && sockets.has(inode)) yield { pid: Number(name), inode };
    }
  }
}

const listNames = (folder: string): string[] => tryOr(() => readdirSync(folder), []);
const readLinkTarget = (link: string): string => tryOr(() => readlinkSync(link), "");
const readOwner = (path: string): number => tryOr(() => statSync(path).uid, -1);
