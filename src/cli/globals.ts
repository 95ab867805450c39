// Global options before the command: configuration, server, headers. Programs that start this one, such as editor plug-ins, use them
// (docs/editors.md).
import { suggestName } from "#base/config/suggest.ts";
import { usageError } from "#base/usage-error.ts";
import type { VerbInput } from "./verb.ts";

export type Globals = {
  /** Folder with the session, as the files `url` and `session`. */
  configFolder?: string;
  url?: string;
  token?: string;
  headers: readonly string[];
  /** A command that prints additional headers, one per line. */
  headerCommand?: string;
  isVerbose: boolean;
};

const VALUE_FLAGS = ["--global-config", "--url", "--token", "--header", "--header-command"];
const SWITCHES = ["--verbose", "-v"];

/** Parses the global flags at the beginning of the arguments. Throws UsageError. */
export const readGlobals = (argv: readonly string[]): { globals: Globals; rest: readonly string[] } => {
  const headers: string[] = [];
  const values = new Map<string, string>();
  let isVerbose = false;
  let index = 0;
  for (; index < argv.length; index++) {
    const argument = argv[index] as string;
    const equals = argument.indexOf("=");
    const flag = equals < 0 ? argument : argument.slice(0, equals);
    if (SWITCHES.includes(argument)) isVerbose = true;
    else if (VALUE_FLAGS.includes(flag)) {
      const value = equals < 0 ? argv[++index] : argument.slice(equals + 1);
      if (value === undefined || value === "") throw usageError(flag, "expected a value");
      if (flag === "--header") headers.push(value);
      else values.set(flag, value);
    } else if (isProgramFlag(argument) || !argument.startsWith("-")) break;
    else throw usageError(flag, `unknown option.${suggestName(flag, [...VALUE_FLAGS, ...SWITCHES])}`);
  }
  const [configFolder, url, token, headerCommand] = ["--global-config", "--url", "--token", "--header-command"].map(
    (flag) => values.get(flag),
  );
  const globals = {
    headers,
    isVerbose,
    ...(configFolder === undefined ? {} : { configFolder }),
    ...(url === undefined ? {} : { url }),
    ...(token === undefined ? {} : { token }),
    ...(headerCommand === undefined ? {} : { headerCommand }),
  };
  return { globals, rest: argv.slice(index) };
};

/** Flags that act as commands. */
const isProgramFlag = (argument: string): boolean => ["--help", "-h", "--version"].includes(argument);

/** Returns the headers from the flags and from the command's output. Throws UsageError for an invalid header or a failing command. */
export const loadHeaders = async ({ headers, headerCommand, url }: Globals, env: VerbInput["env"]) => {
  const commandLines =
    headerCommand === undefined ? [] : await runHeaderCommand(headerCommand, { ...env, CODER_URL: url ?? "" });
  const flags = headers.map((line) => parseHeader("--header", line));
  return Object.fromEntries([...flags, ...commandLines.map((line) => parseHeader("--header-command", line))]);
};

const parseHeader = (flag: string, line: string): readonly [name: string, value: string] => {
  const [, name, value] = /^([\w!#$%&'*+.^`|~-]+)=([^\r\n\0]*)$/.exec(line) ?? [];
  // The line may hold a secret and is not shown.
  if (name === undefined || value === undefined) throw usageError(flag, "expected NAME=VALUE");
  return [name, value];
};

const runHeaderCommand = async (command: string, env: VerbInput["env"]): Promise<string[]> => {
  const shell = process.platform === "win32" ? ["cmd.exe", "/c", command] : ["sh", "-c", command];
  const child = Bun.spawn(shell, { env: env as Record<string, string>, stdio: ["ignore", "pipe", "inherit"] });
  const [text, code] = await Promise.all([child.stdout.text(), child.exited]);
  if (code !== 0) throw usageError("--header-command", `the command failed with exit code ${code}`);
  return text.split(/\r?\n/).filter(Boolean);
};
