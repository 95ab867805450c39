// Arguments that make programs write or run others, which they don't otherwise: `find -delete`, `git log --output=f`, `sort -o f`,
// `uniq in out`, `go test -exec p`. Used for permissions and for read-only commands. Pure.
import { isWritingScript } from "./sed-script.ts";

/** Options with which package managers run scripts of another package, or with another program. */
const SCRIPT_OPTIONS = [
  "script-shell",
  "node-options",
  "prefix",
  "dir",
  "cwd",
  "userconfig",
  "globalconfig",
  "registry",
];

const TERRAFORM_OUTPUT = /^--?(out|state|state-out|backup|generate-config-out|chdir)(=|$)/;

/** Options by program: short ones, alone or in a cluster, and long ones. */
const WRITING_OPTIONS: Readonly<Record<string, readonly [short: RegExp | undefined, long: readonly string[]]>> = {
  bun: [/^-[cr]/, ["preload", "require", "import", "cwd", "config", "shell"]],
  // It accepts no prefixes of long options, and `--target` is another one.
  cargo: [/^(-Z|--(config|manifest-path|target-dir|out-dir|artifact-dir|fix)(=|$))/, []],
  curl: [
    /^-[a-zA-Z#]*[oOTcDJK]/,
    [
      ...["output", "output-dir", "remote-name", "remote-header-name", "upload-file", "cookie-jar", "dump-header"],
      ...["etag-save", "trace", "trace-ascii", "stderr", "libcurl", "hsts", "alt-svc", "config"],
      // The program behind a socket, such as a Docker engine, can do anything.
      ...["unix-socket", "abstract-unix-socket"],
    ],
  ],
  date: [/^-[uR]*s/, ["set"]],
  fd: [/^-[a-zA-Z]*[xX]/, ["exec", "exec-batch"]],
  file: [/^-[a-zA-Z]*C/, ["compile"]],
  find: [/^-(exec|ok|delete|fprint|fls)/, []],
  git: [
    /^-[coO]/,
    [
      ...["config-env", "exec-path", "output", "ext-diff", "textconv", "open-files-in-pager"],
      ...["upload-pack", "receive-pack", "exec"],
    ],
  ],
  go: [
    /^--?(test\.)?(exec|toolexec|vettool|overlay|modfile|compiler|\w+flags|\w+profile|\w+dir|trace|testlogfile|http|C|o)(=|$)/,
    [],
  ],
  iconv: [/^-[cs]*o/, ["output"]],
  less: [/^-[a-zA-Z]*[oO]/, ["log-file", "LOG-FILE"]],
  "[": [/^-[vR]$/, []],
  npm: [/^-C/, SCRIPT_OPTIONS],
  openssl: [/^-(out|keyout|writerand)/, []],
  pnpm: [/^-C/, SCRIPT_OPTIONS],
  printf: [/^-v/, []],
  rg: [undefined, ["pre", "hostname-bin"]],
  sed: [/^-[a-zA-Z]*[ifI]/, ["in-place", "file"]],
  shuf: [/^-[a-zA-Z]*o/, ["output"]],
  sort: [/^-[a-zA-Z]*[oT]/, ["output", "compress-program", "temporary-directory"]],
  terraform: [TERRAFORM_OUTPUT, []],
  test: [/^-[vR]$/, []],
  tofu: [TERRAFORM_OUTPUT, []],
  tree: [/^-[a-zA-Z]*[oR]/, ["output"]],
  xmllint: [undefined, ["output", "shell"]],
  yarn: [undefined, SCRIPT_OPTIONS],
  yq: [/^-[a-zA-Z]*[is]/, ["inplace", "split-exp"]],
};

/** Commands of the shell that take names of variables or numbers, in which bash runs substitutions even if they are quoted: `a[$(x)]`. */
const EVALUATING = new Set(
  "[ test printf let read readarray mapfile declare typeset local export readonly unset getopts wait".split(" "),
);
const isEvaluated = (argument: string): boolean => argument.includes("[") && /[$`]/.test(argument);

/** Programs accept every unambiguous prefix of a long option, such as `--outp=f`. */
export const isLong = (argument: string, names: readonly string[]): boolean => {
  const [, written = ""] = /^--([^=]+)/.exec(argument) ?? [];
  return written !== "" && names.some((name) => name.startsWith(written) || written.startsWith(name));
};

/** Options of date whose value is not a time to set. */
const DATE_VALUE_OPTION = /^(-[uR]*[dfr]|--(date|file|reference))$/;

/** Programs that write to their second file, with their options that take a value. */
const SECOND_FILE: Readonly<Record<string, RegExp>> = { uniq: /^-[fsw]$/, xxd: /^-[cglosn]$/ };

/** Returns the arguments that sed may interpret as a script; for some versions the value of `-l` is one. */
const findScripts = (args: readonly string[]): string[] => {
  const scripts: string[] = [];
  let hasScript = false;
  for (let at = 0; at < args.length; at++) {
    const one = args[at] ?? "";
    const [, short, inWord] = /^-[a-zA-Z]*?([el])([\s\S]*)$/.exec(one) ?? [];
    const [, long, value] = /^--([el][a-z-]*)(?:=([\s\S]*))?$/.exec(one) ?? [];
    if (one === "--") {
      if (!hasScript) scripts.push(args[at + 1] ?? "");
      break;
    }
    const name = short ?? long?.[0];
    if (name !== undefined) {
      scripts.push((inWord || value) ?? args[++at] ?? "");
      hasScript ||= name === "e";
    } else if (!/^-./.test(one) && !hasScript) {
      scripts.push(one);
      hasScript = true;
    }
  }
  return scripts;
};

/** True if some argument makes the program write. */
export const canWrite = (program: string): boolean =>
  Object.hasOwn(WRITING_OPTIONS, program) || Object.hasOwn(SECOND_FILE, program);

/** Returns the first argument that makes the program write or run something; undefined if it only reads. */
export const findWritingArgument = (program: string, args: readonly string[]): string | undefined =>
  findWritingArguments(program, args)[0];

/** Returns all such arguments. */
export const findWritingArguments = (program: string, args: readonly string[]): readonly string[] => {
  const [short, long] = (Object.hasOwn(WRITING_OPTIONS, program) ? WRITING_OPTIONS[program] : undefined) ?? [
    undefined,
    [],
  ];
  const evaluated = EVALUATING.has(program) ? args.filter(isEvaluated) : [];
  // Only the first argument of printf can be its option.
  const options = program === "printf" ? args.slice(0, 1) : args;
  return [
    ...options.filter((one) => short?.test(one) || isLong(one, long)),
    ...evaluated,
    ...findOperands(program, args),
  ];
};

/** Returns arguments that write because of their position, or in the syntax of one program. */
const findOperands = (program: string, args: readonly string[]): readonly string[] => {
  if (program === "sed") return findScripts(args).filter(isWritingScript);
  // The option may be in a cluster of short options.
  if (program === "git" && args.includes("grep")) return args.filter((one) => /^-[a-zA-Z0-9]+O/.test(one));
  if (program === "date")
    return args.filter((one, at) => /^[^-+]/.test(one) && !DATE_VALUE_OPTION.test(args[at - 1] ?? ""));
  const valued = Object.hasOwn(SECOND_FILE, program) ? SECOND_FILE[program] : undefined;
  if (!valued) return [];
  const files = args.filter((one, at) => (one === "-" || !one.startsWith("-")) && !valued.test(args[at - 1] ?? ""));
  return files.slice(1);
};
