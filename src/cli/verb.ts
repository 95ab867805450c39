// The interface of a verb (a CLI command), and the input it gets from src/main.ts. Verbs use no globals: no process, no console.
import type { Clock } from "#base/clock.ts";
import type { Input } from "#base/config.ts";
import type { Streams } from "./streams.ts";

/** Exit codes of the program. */
export const EXIT = { ok: 0, failed: 1, usage: 2, interrupted: 130 } as const;

export interface VerbInput extends Input {
  /** Aborted by the first SIGINT or SIGTERM. */
  signal: AbortSignal;
  clock: Clock;
  /** Writes text and a newline to standard output. */
  print(text: string): void;
  /** Writes text to standard error, unmodified. */
  printError(text: string): void;
  /** Calls `listener` at each SIGHUP, which would otherwise end the program. */
  onReload?(listener: () => void): void;
  /** Removes variables from the process's visible environment and from that of child processes; `env` keeps them. */
  forgetVariables?(names: readonly string[]): void;
  /** Keeps other programs of the same user from reading the process's memory. */
  protectMemory?(): boolean;
  /** Folder that stores the session instead of the user's configuration, as the files `url` and `session`. */
  configFolder?: string;
  /** Headers for every request to the server, such as ones that a proxy requires. */
  headers?: Readonly<Record<string, string>>;
  /** The process that started this one, such as OpenSSH. */
  parentPid?: number;
  /** Logs more. */
  isVerbose?: boolean;
  /** True if standard error is a terminal. */
  isTerminal: boolean;
  /** For verbs that prompt, or transfer bytes. */
  streams?: Streams;
}

/** Runs the verb and returns the exit code. */
export type RunVerb = (input: VerbInput) => Promise<number>;

/** The kinds of names that completion can offer for the first argument of a verb. */
export type NameKind =
  | "workspace"
  | "template"
  | "task"
  | "chat"
  | "user"
  | "group"
  | "token"
  | "secret"
  | "application";

/** A subcommand, such as `list` of `slipway users list`. */
export interface SubVerb {
  /** One word, or two separated by a space, such as `apps list`. */
  name: string;
  /** Its arguments. */
  usage: string;
  /** A short description. */
  help: string;
  /** The kind of names that completion offers for the first argument. */
  completes?: NameKind;
  load(): Promise<{ run: RunVerb }>;
}

/** The purposes of verbs, in the order of `slipway help`. Verbs called by programs are plumbing. */
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
  /** Its arguments, for the first line of `--help`. */
  usage: string;
  /** The rest of `--help`, such as the settings. */
  details?(): string;
  /** The subcommands of a verb. */
  subcommands?: readonly SubVerb[];
  /** The verb also works without a subcommand, as `help` and `usage` say. */
  isCalledAlone?: true;
  /** The kind of names that completion offers for the first argument. */
  completes?: NameKind;
  load(): Promise<{ run: RunVerb }>;
}

/** Removes a switch of the verb itself, such as `--json`, from the arguments. */
export const takeSwitch = (argv: readonly string[], name: string): { isGiven: boolean; rest: string[] } => {
  const rest = argv.filter((argument) => argument !== name);
  return { isGiven: rest.length < argv.length, rest };
};

/** Returns the first argument if it is not a flag: the target of the verb. */
export const takePath = (argv: readonly string[]): { path: string | undefined; rest: readonly string[] } => {
  const [first] = argv;
  if (first === undefined || first.startsWith("-")) return { path: undefined, rest: argv };
  return { path: first, rest: argv.slice(1) };
};
