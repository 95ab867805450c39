// Arguments that make programs write, or run others, though the programs are known for reading: `find -delete`, `git log --output=f`,
// `sort -o f`, `uniq in out`. Used by permissions, and where nothing may be written at all. Pure.

/** Options by program: short ones, alone or in a cluster, and the long ones. */
const OPTIONS: Readonly<Record<string, readonly [short: RegExp | undefined, long: readonly string[]]>> = {
  curl: [
    /^-[a-zA-Z#]*[oOTcDJK]/,
    [
      ...["output", "output-dir", "remote-name", "remote-header-name", "upload-file", "cookie-jar", "dump-header"],
      ...["etag-save", "trace", "trace-ascii", "stderr", "libcurl", "hsts", "alt-svc", "config"],
    ],
  ],
  date: [/^-[uR]*s/, ["set"]],
  fd: [/^-[a-zA-Z]*[xX]/, ["exec", "exec-batch"]],
  file: [/^-[a-zA-Z]*C/, ["compile"]],
  find: [/^-(exec|ok|delete|fprint|fls)/, []],
  git: [/^-[coO]/, ["config-env", "exec-path", "output", "ext-diff", "textconv", "open-files-in-pager"]],
  iconv: [/^-[cs]*o/, ["output"]],
  less: [/^-[a-zA-Z]*[oO]/, ["log-file", "LOG-FILE"]],
  openssl: [/^-(out|keyout|writerand)/, []],
  rg: [undefined, ["pre", "hostname-bin"]],
  sed: [/^-[a-zA-Z]*[if]/, ["in-place", "file"]],
  sort: [/^-[a-zA-Z]*[oT]/, ["output", "compress-program", "temporary-directory"]],
  tree: [/^-[a-zA-Z]*[oR]/, ["output"]],
  xmllint: [undefined, ["output"]],
  yq: [/^-[a-zA-Z]*[is]/, ["inplace", "split-exp"]],
};

/** Programs take every beginning of a long option, such as `--outp=f`, that is no other option's. */
const isLong = (argument: string, names: readonly string[]): boolean => {
  const [, written = ""] = /^--([^=]+)/.exec(argument) ?? [];
  return written !== "" && names.some((name) => name.startsWith(written) || written.startsWith(name));
};

/** A substitution in a script of sed, with its flags. */
const SED_SUBSTITUTION = /s([^\w\s])(?:\\.|(?!\1).)*\1(?:\\.|(?!\1).)*\1(\w*)/g;
/** What remains of a script that writes (`w`) or runs (`e`). */
const SED_COMMAND = /(?:^|[;{}/0-9$!\s])[we](?:\s|$)/i;

/** Options of date whose next word is no time to set. */
const DATE_VALUED = /^(-[uR]*[dfr]|--(date|file|reference))$/;

/** Programs whose second file is the one they write, with the options that take a word of their own. */
const SECOND_FILE: Readonly<Record<string, RegExp>> = { uniq: /^-[fsw]$/, xxd: /^-[cglosn]$/ };

const isWritingScript = (script: string): boolean =>
  [...script.matchAll(SED_SUBSTITUTION)].some(([, , flags = ""]) => /[we]/.test(flags)) ||
  SED_COMMAND.test(script.replace(SED_SUBSTITUTION, ";"));

/** The script of sed in an argument: a word of its own, or the value of `-e` or `--expression`. */
const scriptIn = (argument: string): string => {
  if (argument.startsWith("--")) return argument.slice(argument.indexOf("=") + 1);
  return argument.startsWith("-") ? argument.replace(/^-[a-zA-Z]*?e/, "") : argument;
};

/** True for a program that some argument makes write. */
export const canWrite = (program: string): boolean =>
  Object.hasOwn(OPTIONS, program) || Object.hasOwn(SECOND_FILE, program);

/** Returns the argument that makes the program write or run something; undefined where it only reads. */
export const writingArgument = (program: string, args: readonly string[]): string | undefined => {
  const [short, long] = (Object.hasOwn(OPTIONS, program) ? OPTIONS[program] : undefined) ?? [undefined, []];
  const option = args.find((one) => short?.test(one) || isLong(one, long));
  if (option !== undefined) return option;
  if (program === "sed") return args.find((one) => isWritingScript(scriptIn(one)));
  if (program === "date") return args.find((one, at) => /^[^-+]/.test(one) && !DATE_VALUED.test(args[at - 1] ?? ""));
  const valued = Object.hasOwn(SECOND_FILE, program) ? SECOND_FILE[program] : undefined;
  if (!valued) return undefined;
  const files = args.filter((one, at) => (one === "-" || !one.startsWith("-")) && !valued.test(args[at - 1] ?? ""));
  return files[1];
};
