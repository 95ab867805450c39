// The deployments for the store's tests: a directory in this process, or another process behind a bad network.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type LocalStore, openLocalStore } from "#db/engine/local.ts";
import { randomFrom } from "#test/support/random.ts";
import type { Deployment } from "./contract.ts";
import { type Faults, ProxyStore } from "./proxy-store.ts";

/** Creates a directory that exists until the end of the test. */
export const temporaryDirectory = (): { path: string; [Symbol.dispose](): void } => {
  const path = mkdtempSync(join(tmpdir(), "slipway-store-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
};

export const openIn = (
  directory: string,
  options: { queueBytes?: number; fatal?: (error: Error) => void } = {},
): LocalStore =>
  openLocalStore({
    directory,
    cacheMb: 8,
    now: 1_700_000_000_000,
    fatal: (error) => {
      throw error;
    },
    ...options,
  });

/**
 * SQLite in this process. A crash of this process is not possible, so it is simulated: the next owner gets copies of the files that were
 * made while the store was open (test/crash uses real kills).
 */
export const localDeployment = async (): Promise<Deployment> => {
  const temps: ReturnType<typeof temporaryDirectory>[] = [];
  const opened: LocalStore[] = [];
  const createDirectory = (): string => {
    const temp = temporaryDirectory();
    temps.push(temp);
    return temp.path;
  };
  let directory = createDirectory();
  return {
    open: async (options) => {
      const store = openIn(directory, options);
      opened.push(store);
      return store;
    },
    crash: async () => {
      const next = createDirectory();
      for (const file of ["slipway.db", "slipway.db-wal"]) {
        await Bun.write(join(next, file), Bun.file(join(directory, file)));
      }
      directory = next;
    },
    remove: async () => {
      for (const store of opened) await store.close();
      for (const temp of temps) temp[Symbol.dispose]();
    },
  };
};

/** Another process, reached over a Unix socket with faults that depend on the seed. */
export const proxyDeployment = async (seed: number, faults: Faults): Promise<Deployment> => {
  const temp = temporaryDirectory();
  const random = randomFrom(seed);
  let server: Bun.Subprocess<"ignore", "pipe", "inherit"> | undefined;
  const kill = async (): Promise<void> => {
    server?.kill("SIGKILL");
    await server?.exited;
    server = undefined;
  };
  return {
    open: async (options) => {
      await kill();
      const socket = join(temp.path, `socket-${random()}`);
      server = Bun.spawn([process.execPath, join(import.meta.dir, "proxy-server.ts"), temp.path, socket], {
        stdin: "ignore",
        stdout: "pipe",
        stderr: "inherit",
      });
      const { value } = await server.stdout.getReader().read();
      const epoch = Number(/^epoch (\d+)/.exec(new TextDecoder().decode(value))?.[1]);
      return new ProxyStore({ socket, epoch, random, faults, ...options });
    },
    crash: kill,
    remove: async () => {
      await kill();
      temp[Symbol.dispose]();
    },
  };
};
