// Programs on terminals: the interface, and programs of this machine on a local pseudo-terminal. container.ts has programs inside
// containers.

import { readlinkSync } from "node:fs";
import type { Clock } from "#base/clock.ts";
import { readStatFields, tryOr } from "../own-processes.ts";
import type { ProcessGroups } from "../scripts/groups.ts";
import { endSession } from "./end.ts";
import { type OutputGate, spawnWithGate } from "./gate.ts";

export type TerminalSize = { height: number; width: number };

/** Events that a program sends to its terminal. */
export type ProgramEvents = {
  /** The receiver owns the bytes. */
  output(chunk: Uint8Array): void;
  /** All input has been accepted. */
  drained(): void;
  /** There will be no more output. */
  closed(): void;
};

export interface TerminalProgram {
  /** Settles when the program has ended; its background processes may still write. */
  readonly exited: Promise<unknown>;
  /** Pauses its output; undefined if that is not possible. */
  readonly gate: OutputGate | undefined;
  /** Returns the current folder of its foreground program; undefined if unknown. */
  folder?(): string | undefined;
  write(data: string | Uint8Array): void;
  resize(size: TerminalSize): void;
  /** Ends the program and everything it has started on this terminal. */
  end(): Promise<void>;
  /** Releases resources after the program has ended and all output was read. */
  release(): void;
}

export type LocalProgramOptions = {
  command: readonly string[];
  directory: string;
  env: Readonly<Record<string, string>>;
  size: TerminalSize;
  clock: Clock;
  groups: ProcessGroups;
};

/** A program of this machine. Its exit code or signal is set once it has ended. */
export interface LocalProgram extends TerminalProgram {
  readonly exitCode: number | null;
  /** A number if the system has no name for the signal. */
  readonly signalCode: NodeJS.Signals | number | null;
  signal(name: NodeJS.Signals): void;
}

/** Throws if the program cannot be started. */
export const startProgram = (options: LocalProgramOptions, events: ProgramEvents): LocalProgram => {
  const { command, directory, env, size, clock, groups } = options;
  const { spawned: child, gate } = spawnWithGate(() =>
    Bun.spawn([...command], {
      cwd: directory,
      env: { ...env },
      // Starts a new session: only then is this the program's controlling terminal, so that Ctrl-C reaches the foreground program.
      detached: true,
      terminal: {
        cols: size.width,
        rows: size.height,
        name: "xterm-256color",
        data: (_, chunk) => events.output(chunk),
        drain: () => events.drained(),
        exit: () => events.closed(),
      },
    }),
  );
  groups.add(child.pid);
  return {
    exited: child.exited,
    get exitCode() {
      return child.exitCode;
    },
    get signalCode() {
      return child.signalCode;
    },
    signal: (name) => child.kill(name),
    gate,
    folder: () => findForegroundFolder(child.pid),
    write: (data) => void child.terminal?.write(data),
    resize: ({ height, width }) => child.terminal?.resize(width, height),
    end: () => endSession(child.pid, clock),
    release() {
      child.terminal?.close();
      groups.onLeaderEnd(child.pid);
      void endSession(child.pid, clock);
    },
  };
};

/**
 * Returns the folder of the terminal's foreground program; undefined if the system does not report it. `leader`: the terminal's first
 * process.
 */
const findForegroundFolder = (leader: number): string | undefined =>
  findFolder(findForegroundLeader(leader) ?? leader) ?? findFolder(leader);

/** Returns the leader of the foreground group. */
const findForegroundLeader = (pid: number): number | undefined => {
  const group = Number(readStatFields(pid)[5]);
  return group > 0 ? group : undefined;
};

const findFolder = (pid: number): string | undefined => tryOr(() => readlinkSync(`/proc/${pid}/cwd`), undefined);
