// The program of an SSH session: the options to start it, and the methods for the session's later requests.
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
  /** Called once the program has ended. */
  exited(reason: string, code: number): void;
};

export interface Running {
  signal(name: NodeJS.Signals): void;
  resize?(size: { height: number; width: number }): void;
}
