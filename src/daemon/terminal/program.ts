// What runs on a terminal, as the terminal sees it: a program of this machine on a pseudo-terminal here, or one inside a container
// (terminal-container.ts).
import type { Clock } from "#base/clock.ts";
import type { ProcessGroups } from "../scripts/groups.ts";
import { endSession } from "./end.ts";
import { folderOfForeground } from "./foreground.ts";
import { type OutputGate, spawnWithGate } from "./gate.ts";

export type TerminalSize = { height: number; width: number };

/** What a program tells its terminal. */
export type ProgramEvents = {
  /** The bytes are the listener's to keep. */
  output(chunk: Uint8Array): void;
  /** All that was typed has been taken. */
  drained(): void;
  /** Nothing more will be shown. */
  closed(): void;
};

export interface TerminalProgram {
  /** Settles when the program has ended; things it left in the background may still write. */
  readonly exited: Promise<unknown>;
  /** Holds its output back; undefined where there is no way. */
  readonly gate: OutputGate | undefined;
  /** The folder its foreground program is in now; undefined where that cannot be known. */
  folder?(): string | undefined;
  write(data: string | Uint8Array): void;
  resize(size: TerminalSize): void;
  /** Ends it and everything it has started on this terminal. */
  end(): Promise<void>;
  /** The program has ended and all was read: releases the rest. */
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

/** One of this machine. Its code or signal is there once it has ended. */
export interface LocalProgram extends TerminalProgram {
  readonly exitCode: number | null;
  /** A number where the system has no name for it. */
  readonly signalCode: NodeJS.Signals | number | null;
  signal(name: NodeJS.Signals): void;
}

/** Throws when the program cannot be started. */
export const startProgram = (options: LocalProgramOptions, events: ProgramEvents): LocalProgram => {
  const { command, directory, env, size, clock, groups } = options;
  const { spawned: child, gate } = spawnWithGate(() =>
    Bun.spawn([...command], {
      cwd: directory,
      env: { ...env },
      // A session of its own: only then is the terminal its controlling one, and Ctrl-C reaches the foreground program.
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
    folder: () => folderOfForeground(child.pid),
    write: (data) => void child.terminal?.write(data),
    resize: ({ height, width }) => child.terminal?.resize(width, height),
    end: () => endSession(child.pid, clock),
    release() {
      child.terminal?.close();
      groups.ended(child.pid);
      void endSession(child.pid, clock);
    },
  };
};
