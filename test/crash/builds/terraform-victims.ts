// The victims of server-terraform.ts: a server, its worker, or the Terraform program.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "#src/client.ts";
import { needs } from "#test/support/needs.ts";
import { until } from "#test/support/until.ts";
import { makeKey, startWorker, type WorkerProcess } from "#test/support/worker.ts";
import type { ServerSlot } from "../server.ts";

/** A process that a test kills or pauses, and later restarts or resumes. */
export type Victim = AsyncDisposable & {
  /** Restarts the victim with a failpoint, at which it will die. */
  readonly arm: (point: string) => Promise<void>;
  readonly awaitExit: () => Promise<void>;
  readonly kill: () => Promise<void>;
  readonly revive: () => Promise<void>;
  /** The folder that contains the victim's run folders. */
  readonly root: string;
  /** Folders of workers. */
  readonly directories: readonly string[];
  /** The workers' log output. */
  readonly getLogs: () => string;
  /** Called when the work has ended. */
  readonly afterWork?: () => Promise<void>;
};

export type Stage = { readonly place: ServerSlot; readonly env: Record<string, string>; readonly client: Client };

const NO_WORKER = { directories: [], getLogs: () => "", [Symbol.asyncDispose]: async () => {} };

export const makeServerVictim = ({ place, env }: Stage): Victim => ({
  ...NO_WORKER,
  root: join(place.directory, "terraform"),
  arm: async (point) => {
    await place.stop();
    await place.start({ env: { ...env, SLIPWAY_FAILPOINT: point } });
  },
  awaitExit: async () => {
    await place.currentProcess.ended;
  },
  kill: async () => {
    place.currentProcess.kill("SIGKILL");
    await place.currentProcess.ended;
  },
  revive: async () => {
    await place.start({ env });
  },
});

/** A paused process cannot die at a failpoint. */
const rejectDeath = (): Promise<never> => Promise.reject(new Error("this victim does not die at a failpoint"));

/** Milliseconds after which a worker gives up on an unresponsive server. */
const WORKER_PATIENCE_MS = 22_000;

/** A server that is paused for longer than its workers' timeout. */
export const makeUnresponsiveServer = ({ place }: Stage): Victim => ({
  ...NO_WORKER,
  root: join(place.directory, "terraform"),
  arm: rejectDeath,
  awaitExit: rejectDeath,
  kill: async () => {
    place.currentProcess.kill("SIGSTOP");
    await Bun.sleep(WORKER_PATIENCE_MS);
  },
  revive: async () => {
    place.currentProcess.kill("SIGCONT");
  },
});

const ENV = {
  SLIPWAY_WORKER_TERRAFORM_CLI_CONFIG: join(needs.terraform.file, "rc"),
  SLIPWAY_WORKER_LOG_LEVEL: "debug",
};

/** Creates a worker of this name with a separate key and folder. */
const createWorker = async ({ place, client }: Stage, name: string) => {
  const { key } = await makeKey(client);
  const directory = join(place.scratch, name);
  mkdirSync(directory, { recursive: true });
  const start = (env: Record<string, string> = {}): WorkerProcess =>
    startWorker({ url: new URL(client.url), key, name, directory, kinds: "terraform", env: { ...ENV, ...env } });
  return { directory, start };
};

export const makeWorkerVictim = async (stage: Stage): Promise<Victim> => {
  const { directory, start } = await createWorker(stage, "victim");
  let earlierLogs = "";
  let worker = start();
  await worker.connected();
  const restart = async (env?: Record<string, string>): Promise<void> => {
    earlierLogs += worker.errors();
    worker = start(env);
    await worker.connected();
  };
  return {
    directories: [directory],
    root: join(directory, "terraform"),
    getLogs: () => earlierLogs + worker.errors(),
    arm: async (point: string) => {
      worker.signal("SIGTERM");
      await worker.exited;
      await restart({ SLIPWAY_FAILPOINT: point });
    },
    awaitExit: async () => {
      await worker.exited;
    },
    kill: async () => {
      worker.signal("SIGKILL");
      await worker.exited;
    },
    revive: () => restart(),
    [Symbol.asyncDispose]: () => worker[Symbol.asyncDispose](),
  };
};

const GIVE_UP_WAIT = { timeoutMs: 60_000, what: "the server to give up on the worker" };

/** A worker that is paused until the server has given up on it, and resumed while another worker with the same tags is connected. */
export const makeUnresponsiveWorker = async (stage: Stage): Promise<Victim> => {
  const { directory, start } = await createWorker(stage, "victim");
  const otherWorker = await createWorker(stage, "other");
  const worker = start();
  await worker.connected();
  let otherProcess: WorkerProcess | undefined;
  let earlierLogs = "";
  let connectionCount = 1;
  const countLost = (): number => stage.place.currentProcess.errors.split("has not been heard of").length;
  return {
    directories: [directory, otherWorker.directory],
    root: join(directory, "terraform"),
    getLogs: () => earlierLogs + worker.errors() + (otherProcess?.errors() ?? ""),
    arm: rejectDeath,
    awaitExit: rejectDeath,
    kill: async () => {
      const lostBefore = countLost();
      worker.signal("SIGSTOP");
      otherProcess = otherWorker.start();
      await otherProcess.connected();
      await until(() => countLost() > lostBefore, GIVE_UP_WAIT);
    },
    revive: async () => {
      worker.signal("SIGCONT");
      connectionCount += 1;
      await worker.connected(connectionCount);
    },
    afterWork: async () => {
      earlierLogs += otherProcess?.errors() ?? "";
      await otherProcess?.[Symbol.asyncDispose]();
      otherProcess = undefined;
    },
    [Symbol.asyncDispose]: async () => {
      await otherProcess?.[Symbol.asyncDispose]();
      await worker[Symbol.asyncDispose]();
    },
  };
};

/** Lengths of successive pauses: shorter than, similar to and longer than the timeout of the other side. */
const PAUSES_MS = [2_000, 6_000, 20_000];

type Pausable = Pick<Victim, "root" | "directories" | "getLogs"> & {
  readonly signal: (name: "SIGSTOP" | "SIGCONT") => void;
  readonly [Symbol.asyncDispose]: () => Promise<void>;
};

/** Pauses the process during its operation. It then continues with the same peer. */
const makePaused = ({ signal, ...rest }: Pausable): Victim => {
  let pauseCount = 0;
  return {
    ...rest,
    arm: rejectDeath,
    awaitExit: rejectDeath,
    kill: async () => {
      signal("SIGSTOP");
      await Bun.sleep(PAUSES_MS[pauseCount++ % PAUSES_MS.length] ?? 0);
    },
    revive: async () => signal("SIGCONT"),
  };
};

export const makePausedServer = ({ place }: Stage): Victim =>
  makePaused({
    ...NO_WORKER,
    root: join(place.directory, "terraform"),
    signal: (name) => place.currentProcess.kill(name),
  });

export const makePausedWorker = async (stage: Stage): Promise<Victim> => {
  const { directory, start } = await createWorker(stage, "victim");
  const worker = start();
  await worker.connected();
  return makePaused({
    directories: [directory],
    root: join(directory, "terraform"),
    getLogs: () => worker.errors(),
    signal: (name) => worker.signal(name),
    [Symbol.asyncDispose]: async () => {
      await worker[Symbol.asyncDispose]();
    },
  });
};

/** Pauses the Terraform program itself; `running` returns the processes whose working directory is below a folder. */
export const makePausedProgram = ({ place }: Stage, running: (root: string) => readonly { pid: number }[]): Victim => {
  const root = join(place.directory, "terraform");
  let pids: readonly number[] = [];
  return makePaused({
    ...NO_WORKER,
    root,
    signal: (name) => {
      if (name === "SIGSTOP") pids = running(root).map(({ pid }) => pid);
      for (const pid of pids) process.kill(pid, name);
    },
  });
};
