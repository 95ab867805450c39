// What an SSH session runs: what it needs to begin, and how the session's later requests reach it.
import type ssh2 from "ssh2";
import type { Clock } from "#base/clock.ts";
import type { Environment } from "../environment.ts";
import type { ProcessGroups } from "../scripts/groups.ts";

export type RunOptions = {
  channel: ssh2.ServerChannel;
  command: readonly string[];
  directory: string;
  env: Environment;
  clock: Clock;
  groups: ProcessGroups;
  /** Told once the program has ended. */
  exited(reason: string, code: number): void;
};

export interface Running {
  signal(name: NodeJS.Signals): void;
  resize?(size: { height: number; width: number }): void;
}
