// What a verb of the command line is, and what src/main.ts hands to it. Verbs touch no global: no process, no console.
import type { Clock } from "#base/clock.ts";
import type { Input } from "#base/config.ts";
import type { Streams } from "./streams.ts";

/** Exit codes of the program. */
export const EXIT = { ok: 0, failed: 1, usage: 2, interrupted: 130 } as const;

export interface VerbInput extends Input {
  /** Aborted by the first SIGINT or SIGTERM. */
  signal: AbortSignal;
  clock: Clock;
  /** Writes text and a line end to standard output. */
  print(text: string): void;
  /** Writes to standard error, as it is. */
  printError(text: string): void;
  /** Calls `listener` at each SIGHUP, which otherwise ends the program. */
  onReload?(listener: () => void): void;
  /** Takes variables out of what the system shows of this process, and of what programs are started with; `env` keeps them. */
  forgetVariables?(names: readonly string[]): void;
  /** Where the sign-in is kept instead of the user's own configuration: a folder with the files `url` and `session`. */
  configFolder?: string;
  /** Headers for every request to the server, such as ones that a proxy requires. */
  headers?: Readonly<Record<string, string>>;
  /** The process that has started this one, such as OpenSSH. */
  parentPid?: number;
  /** Logs more. */
  isVerbose?: boolean;
  /** True when standard error is a terminal. */
  isTerminal: boolean;
  /** For verbs that ask, or pass bytes on. */
  streams?: Streams;
}

/** Does the work and answers the exit code. */
export type RunVerb = (input: VerbInput) => Promise<number>;

/** What the first argument of a call names, so that completion can offer those there are. */
export type Named = "workspace" | "template" | "task" | "chat" | "user" | "group" | "token" | "secret" | "application";

/** One of the words that say what a verb is to do, such as `list` of `slipway users list`. */
export interface SubVerb {
  /** One word, or two with a blank between them, such as `apps list`. */
  name: string;
  /** What may stand behind it. */
  usage: string;
  /** What it does, in a few words. */
  help: string;
  names?: Named;
  load(): Promise<{ run: RunVerb }>;
}

/** What a verb is for, in the order of `slipway help`. What machines call is plumbing. */
export const AREAS = {
  start: "Get started",
  workspaces: "Workspaces",
  chats: "Chats and tasks",
  templates: "Templates",
  people: "People and access",
  server: "Running a server",
  plumbing: "Internal, called by programs",
} as const;
export type Area = keyof typeof AREAS;

export interface Verb {
  name: string;
  area: Area;
  /** One line for the list of verbs. */
  help: string;
  /** What may stand behind the name, for the first line of `--help`. */
  usage: string;
  /** The rest of `--help`, such as the settings. */
  details?(): string;
  /** The words of a verb that does several things. */
  words?: readonly SubVerb[];
  /** A call without any of the words does something, too: what `help` and `usage` say. */
  isCalledAlone?: true;
  names?: Named;
  load(): Promise<{ run: RunVerb }>;
}

/** Takes a switch that belongs to the verb itself, such as `--json`, out of the arguments. */
export const takeSwitch = (argv: readonly string[], name: string): { given: boolean; rest: string[] } => {
  const rest = argv.filter((argument) => argument !== name);
  return { given: rest.length < argv.length, rest };
};

/** Takes what stands first, when that is no flag: what the verb is to work on. */
export const takePath = (argv: readonly string[]): { path: string | undefined; rest: readonly string[] } => {
  const [first] = argv;
  if (first === undefined || first.startsWith("-")) return { path: undefined, rest: argv };
  return { path: first, rest: argv.slice(1) };
};
