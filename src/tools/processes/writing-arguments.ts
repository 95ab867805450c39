// Arguments that make programs write, or run others, though the programs are known for reading: `find -delete`, `git log --output=f`,
// `sort -o f`, `uniq in out`. Used by permissions, and where nothing may be written at all. Pure.

/** Options by program. */
const OPTIONS: Readonly<Record<string, RegExp>> = {
  curl: /^(-[a-zA-Z#]*[oOTcDJK]|--(output|remote|upload|cookie-jar|dump-header|etag-save|trace|stderr|libcurl|hsts|alt-svc|config))/,
  date: /^(-s|--set)/,
  fd: /^(-[a-zA-Z]*[xX]|--exec)/,
  file: /^(-[a-zA-Z]*C|--compile)/,
  find: /^-(exec|ok|delete|fprint|fls)/,
  git: /^(-c|--config-env|--exec-path|--output|-o|--ext-diff|--textconv|-O|--open-files-in-pager)/,
  iconv: /^(-o|--output)/,
  less: /^(-[a-zA-Z]*[oO]|--log-file|--LOG-FILE)/,
  openssl: /^-(out|keyout|writerand)/,
  rg: /^--(pre|hostname-bin)/,
  sed: /^(-[a-zA-Z]*i|--in-place)/,
  sort: /^(-[a-zA-Z]*o|--output|--compress-program|-T|--temporary-directory)/,
  tree: /^(-[a-zA-Z]*o|--output)/,
  xmllint: /^--output/,
  yq: /^(-[a-zA-Z]*i|--inplace|-[a-zA-Z]*s|--split-exp)/,
};

/** A substitution in a script of sed, with its flags. */
const SED_SUBSTITUTION = /s([^\w\s])(?:\\.|(?!\1).)*\1(?:\\.|(?!\1).)*\1(\w*)/g;
/** What remains of a script that writes (`w`) or runs (`e`). */
const SED_COMMAND = /(?:^|[;{}/0-9$!\s])[we](?:\s|$)/i;

/** Programs whose second file is the one they write, with the options that take a word of their own. */
const SECOND_FILE: Readonly<Record<string, RegExp>> = { uniq: /^-[fsw]$/, xxd: /^-[cglosn]$/ };

const isWritingScript = (script: string): boolean =>
  [...script.matchAll(SED_SUBSTITUTION)].some(([, , flags = ""]) => /[we]/.test(flags)) ||
  SED_COMMAND.test(script.replace(SED_SUBSTITUTION, ";"));

/** True for a program that some argument makes write. */
export const canWrite = (program: string): boolean =>
  Object.hasOwn(OPTIONS, program) || Object.hasOwn(SECOND_FILE, program);

/** Returns the argument that makes the program write or run something; undefined where it only reads. */
export const writingArgument = (program: string, args: readonly string[]): string | undefined => {
  const options = Object.hasOwn(OPTIONS, program) ? OPTIONS[program] : undefined;
  const option = options && args.find((one) => options.test(one));
  if (option !== undefined) return option;
  if (program === "sed") return args.find((one) => !one.startsWith("-") && isWritingScript(one));
  const valued = Object.hasOwn(SECOND_FILE, program) ? SECOND_FILE[program] : undefined;
  if (!valued) return undefined;
  const files = args.filter((one, at) => (one === "-" || !one.startsWith("-")) && !valued.test(args[at - 1] ?? ""));
  return files[1];
};
