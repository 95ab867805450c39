// What may follow the words of a rule that allows a command, for programs that run code, write files or send data. Only what is known to be
// harmless for the program may: listed options, and, depending on the program, names or paths inside the folder. Programs that only read are
// not listed: for them, writing-arguments.ts has the arguments that make them write. Pure.
import { trimEnd } from "#base/text/trim.ts";
import type { CommandWords } from "./plain-commands.ts";
import { PACKAGE_RUNNERS, takesAction } from "./widening-arguments.ts";

/**
 * Which words that are neither options nor their values may follow. `names`: names of anything. `paths`: paths inside the folder. `below`:
 * paths that the rule names, and paths below them; everything inside the folder if the rule names none. `below_named`: the same, but the
 * rule must name some. `named`: only words of the rule.
 */
type Operands = "names" | "paths" | "below" | "below_named" | "named";

type Harmless = {
  readonly operands: Operands;
  readonly options: RegExp;
  /** Options whose value is the next word. */
  readonly valued?: RegExp;
  /** Values are only text, such as the message of a commit. */
  readonly hasText?: true;
};

const toPattern = (short: string, long: string, dashes = "--"): RegExp =>
  new RegExp(`^(?:${short}|${dashes}(?:${long.trim().split(/\s+/).join("|")}))$`);

/** Options that change only how test runners, linters and formatters select, run and report. A letter is harmless for each of them. */
const CHECKER_SHORT = "-[vqsxkmltijbghVS]+\\d*|-n\\d+";
const CHECKER_LONG = `bail changed check co collect-only color colors coverage deselect detectOpenHandles diff disable-warnings durations edition
  exit exitfirst ext failed-first ff fgrep follow-imports forceExit grep help ignore ignore-missing-imports ignore-pattern invert jobs json
  keyword last-failed lf line-length list list-different list-files listTests max-warnings maxfail maxWorkers no-color no-colors no-cov no-header
  no-summary noEmit no-emit nf onlyChanged parallel passWithNoTests pretty preview quiet recursive reruns run runInBand select show-error-codes
  showlocals silent skipLibCheck slow statistics stepwise strict strict-markers sw target-version tb testNamePattern testPathPattern
  testPathPatterns timeout verbose version watch`;
const CHECKER_OPTIONS = toPattern(CHECKER_SHORT, CHECKER_LONG);

/** Checkers run or write the given files, and load settings, which can be code, from the folders of these files. */
const makeChecker = (valued?: RegExp, operands: Operands = "below", options = CHECKER_OPTIONS): Harmless => ({
  operands,
  options,
  ...(valued ? { valued } : {}),
});
const VITEST = makeChecker(toPattern("-t", "testNamePattern"));
const CHECKERS: Readonly<Record<string, Harmless>> = {
  biome: makeChecker(),
  black: makeChecker(toPattern("-[lt]", "line-length target-version"), "below_named"),
  eslint: makeChecker(toPattern("-", "max-warnings ext ignore-pattern")),
  gofmt: makeChecker(),
  jest: makeChecker(toPattern("-t", "testNamePattern maxWorkers")),
  mocha: makeChecker(toPattern("-[gjt]", "grep fgrep timeout jobs slow")),
  mypy: makeChecker(toPattern("-", "follow-imports")),
  prettier: makeChecker(),
  // For others, the value of `-n` can be an option of an interpreter.
  pytest: makeChecker(
    toPattern("-[vqsxlh]*[km]|-n", "deselect durations ignore maxfail reruns tb timeout"),
    "below",
    toPattern(`${CHECKER_SHORT}|-n(?:auto|logical)?`, CHECKER_LONG),
  ),
  ruff: makeChecker(toPattern("-", "select ignore line-length target-version")),
  rustfmt: makeChecker(toPattern("-", "edition"), "below_named"),
  // It writes next to the files that it is given, and takes `false` after an option.
  tsc: makeChecker(
    undefined,
    "below_named",
    toPattern("-[vhw]", "help noEmit pretty skipLibCheck strict version watch"),
  ),
  vitest: VITEST,
};
/** Subcommands of checkers, after which the files follow. */
const CHECKER_SUBCOMMANDS =
  /^(?:biome (?:check|ci|format|lint)|ruff (?:check|format)|vitest (?:bench|dev|list|run|watch))$/;

/** Scripts of packages which, by their name, pass their arguments to a checker. Others could take anything as a target. */
const CHECKING_SCRIPT = /^(?:t|tst|test|lint|check|typecheck)(?::|$)/;
const SCRIPT_SUBCOMMANDS = /^(?:test|t|tst|stop|start|restart|run|run-script)$/;
const OTHER_SCRIPT: Harmless = { operands: "named", options: toPattern("-s", "silent") };

const CARGO_VALUED = "features bin test example bench package jobs color message-format profile target";
const makeCargo = (operands: Operands, short = "", long = ""): Harmless => ({
  operands,
  options: toPattern(
    `-[vqr]+|-[pjF]${short}`,
    `${CARGO_VALUED} release all workspace all-targets all-features no-default-features lib bins tests examples benches verbose quiet locked
     offline frozen keep-going no-run no-fail-fast doc no-deps ${long}`,
  ),
  valued: toPattern(`-[pjF]${short}`, `${CARGO_VALUED} test-threads skip depth`),
});
const CARGO_TESTS = makeCargo(
  "names",
  "",
  "nocapture no-capture test-threads exact ignored include-ignored skip show-output list",
);

const GO_VALUED = "run skip bench benchtime count timeout parallel p tags cpu list";
const makeGo = (operands: Operands, more = ""): Harmless => ({
  operands,
  options: toPattern(
    "-[vxn]",
    `${GO_VALUED} race short benchmem cover failfast json shuffle a trimpath ${more}`,
    "--?",
  ),
  valued: toPattern("-", GO_VALUED, "--?"),
});

const makeTerraform = (operands: Operands, long: string): Harmless => ({
  operands,
  options: toPattern("-", long, "--?"),
});
const TERRAFORM: Readonly<Record<string, Harmless>> = {
  fmt: makeTerraform("below", "check diff list no-color recursive"),
  plan: makeTerraform(
    "named",
    "compact-warnings detailed-exitcode input json lock-timeout no-color parallelism refresh",
  ),
  validate: makeTerraform("named", "json no-color"),
};

const PACKAGES = toPattern("-[agl]+", "all audit-level depth dev global json long omit parseable prod production");
const PACKAGE_QUERIES: Readonly<Record<string, Harmless>> = {
  audit: { operands: "named", options: PACKAGES },
  info: { operands: "named", options: PACKAGES },
  list: { operands: "names", options: PACKAGES },
  ls: { operands: "names", options: PACKAGES },
  outdated: { operands: "names", options: PACKAGES },
  view: { operands: "named", options: PACKAGES },
};

const makeGit = (operands: Operands, short: string, long = "quiet verbose"): Harmless => ({
  operands,
  options: toPattern(short, long),
});
const JOINING = makeGit("named", "-[nqvx]+", "ff ff-only no-edit no-ff no-stat quiet stat verbose");
const MESSAGE = toPattern("-[aknqsuv]*m", "message");

/** By program and subcommand. */
const SUBCOMMANDS: Readonly<Record<string, Readonly<Record<string, Harmless>>>> = {
  cargo: {
    bench: CARGO_TESTS,
    build: makeCargo("named"),
    check: makeCargo("named"),
    clippy: makeCargo("named", "|-[ADW]"),
    doc: makeCargo("named", "", "document-private-items"),
    fmt: makeCargo("named", "", "check"),
    test: CARGO_TESTS,
    tree: makeCargo("named", "|-[dei]", "depth duplicates edges invert"),
  },
  git: {
    add: makeGit("paths", "-[AnNuv]+", "all dry-run ignore-errors intent-to-add refresh update verbose"),
    branch: makeGit("names", "-[aqrv]+", "all contains list merged no-track quiet remotes show-current track verbose"),
    "cherry-pick": JOINING,
    commit: {
      ...makeGit("paths", "-[aqsv]*m?", "all allow-empty dry-run message no-edit quiet signoff verbose"),
      valued: MESSAGE,
      hasText: true,
    },
    fetch: makeGit("named", "-[qtv]+", "all no-tags progress quiet tags verbose"),
    "ls-remote": makeGit("named", "-[hqt]+", "branches exit-code heads quiet refs symref tags"),
    merge: JOINING,
    pull: makeGit("named", "-[qv]+", "ff ff-only no-rebase no-stat progress quiet stat verbose"),
    push: makeGit("named", "-[nquv]+", "dry-run porcelain progress quiet set-upstream verbose"),
    remote: makeGit("named", "-[nv]+"),
    revert: JOINING,
    stash: {
      ...makeGit("named", "-[kqu]*m?", "include-untracked index keep-index message quiet"),
      valued: MESSAGE,
      hasText: true,
    },
    switch: makeGit("named", "-q", "no-progress progress quiet"),
    tag: { ...makeGit("names", "-[aln]*m?", "annotate list message"), valued: MESSAGE, hasText: true },
    worktree: makeGit("named", "-v", "porcelain verbose"),
  },
  go: {
    build: makeGo("below"),
    doc: makeGo("names", "all c cmd src u"),
    fmt: makeGo("below"),
    list: makeGo("names", "deps e f find test"),
    mod: makeGo("named", "e"),
    test: makeGo("below"),
    vet: makeGo("below"),
    version: makeGo("paths", "m"),
  },
  npm: PACKAGE_QUERIES,
  pnpm: PACKAGE_QUERIES,
  terraform: TERRAFORM,
  tofu: TERRAFORM,
  yarn: PACKAGE_QUERIES,
};

type Found = {
  readonly harmless: Harmless;
  /** The number of words before possible targets, including the program. */
  readonly headLength: number;
  /** The fewest words that say what the command does. A person wrote a shorter rule, which covers every command that begins with it. */
  readonly minRuleLength: number;
};

const findHarmless = (program: string, args: CommandWords): Found | undefined => {
  const checker = Object.hasOwn(CHECKERS, program) ? CHECKERS[program] : undefined;
  if (checker) {
    const hasSubcommand = CHECKER_SUBCOMMANDS.test(`${program} ${args[0]}`);
    const isOther = !hasSubcommand && (program === "biome" || program === "ruff");
    const harmless = isOther ? { ...checker, operands: "named" as const } : checker;
    return { harmless, headLength: hasSubcommand ? 2 : 1, minRuleLength: 1 };
  }
  const script = PACKAGE_RUNNERS.has(program) ? findScript(args) : undefined;
  if (script) return script;
  const [subcommand = "", action] = args;
  const known = Object.hasOwn(SUBCOMMANDS, program) ? SUBCOMMANDS[program] : undefined;
  const harmless = known && Object.hasOwn(known, subcommand) ? known[subcommand] : undefined;
  const isReading = program === "git" && subcommand === "stash" && (action === "list" || action === "show");
  if (!harmless || isReading) return undefined;
  return { harmless, headLength: 2, minRuleLength: takesAction(program, subcommand) ? 3 : 2 };
};

/** Options before the subcommand can have values, so the subcommand is searched for among all words. */
const findScript = (args: CommandWords): Found | undefined => {
  const at = args[0]?.startsWith("-")
    ? args.findIndex((one) => SCRIPT_SUBCOMMANDS.test(one))
    : SCRIPT_SUBCOMMANDS.test(args[0] ?? "")
      ? 0
      : -1;
  if (at < 0) return undefined;
  const end = args[at]?.startsWith("run") ? at + 1 : at;
  const harmless = CHECKING_SCRIPT.test(args[end] ?? "") ? SCRIPT_CHECKER : OTHER_SCRIPT;
  return { harmless, headLength: end + 2, minRuleLength: 1 };
};
const SCRIPT_CHECKER = makeChecker();

type Argument = { readonly word: string; readonly type: "option" | "value" | "operand" };

const listArguments = (words: CommandWords, { valued, hasText }: Harmless, start: number): readonly Argument[] => {
  const found: Argument[] = [];
  for (const [at, word] of words.entries()) {
    const isOption = word.startsWith("-");
    if (at === 0 || word === "--" || (at < start && !isOption)) continue;
    const isValue = found.at(-1)?.type === "option" && valued?.test(words[at - 1] ?? "") === true;
    // Some programs take an option instead of a value for the next option.
    const type = isValue && (!isOption || hasText) ? "value" : isOption && !isValue ? "option" : "operand";
    found.push({ word, type });
  }
  return found;
};

/** Returns the arguments that are not known to be harmless and that the allowing rule does not contain. */
export const findUnknownArguments = (
  words: CommandWords,
  ruleWords: CommandWords,
  program: string,
  folder?: string,
): readonly string[] => {
  const found = findHarmless(program, words.slice(1));
  if (!found || ruleWords.length < found.minRuleLength) return [];
  const { harmless, headLength } = found;
  const roots = listArguments(ruleWords, harmless, headLength).flatMap(({ word, type }) =>
    type === "operand" ? [toRelative(word, folder)] : [],
  );
  const isKnown = ({ word, type }: Argument): boolean => {
    if (type === "operand" ? roots.includes(toRelative(word, folder)) : ruleWords.includes(word)) return true;
    if (type === "value" && harmless.hasText) return true;
    // Many programs read further arguments from the file after `@`.
    if (/^[@+]|:\/\//.test(word) || isOutside(word, folder)) return false;
    if (type === "option") return harmless.options.test(cutAt(word, "=")) && !isTargetFile(program, word);
    if (type === "value") return !isTargetFile(program, word);
    return isKnownOperand(program, toRelative(word, folder), harmless.operands, roots);
  };
  return listArguments(words, harmless, headLength)
    .filter((one) => !isKnown(one))
    .map(({ word }) => word);
};

/**
 * Returns the first words of a command with the words that say what it runs or changes. They are left out if that is everything in the folder,
 * so that parts of it may follow.
 */
export const addOperands = (words: CommandWords, kind: CommandWords, program: string): CommandWords => {
  const { harmless, headLength = 0 } = findHarmless(program, words.slice(1)) ?? {};
  const isFree = !harmless || harmless.operands === "names" || harmless.operands === "paths";
  if (isFree || words[1]?.startsWith("-")) return kind;
  const end = words.findIndex((word, at) => at >= headLength && word.startsWith("-"));
  const all = words.slice(0, end < 0 ? words.length : end);
  const operands = all.slice(headLength);
  const isWhole = harmless.operands === "below" && operands.every((one) => toPlain(one) === "");
  return isWhole ? all.slice(0, headLength) : all;
};

/** The description of a target for cargo, which names programs that it runs. */
const isTargetFile = (program: string, word: string): boolean => program === "cargo" && word.endsWith(".json");

/** Characters of patterns, which match more than they name. */
const PATTERN = /[*?[\]{}()!]/;

const isKnownOperand = (program: string, path: string, operands: Operands, roots: readonly string[]): boolean => {
  if (operands === "named" || path.startsWith("-") || (program === "go" && path.includes("@"))) return false;
  if (operands === "names") return true;
  if (PATTERN.test(path)) return false;
  if (operands === "paths") return true;
  // Other paths name packages of other modules.
  if (program === "go" && !/^\.(?:$|\/)|\.go$/.test(path)) return false;
  if (roots.length === 0) return operands === "below";
  const plain = toPlain(path);
  return roots.map(toPlain).some((root) => root === "" || `${plain}/`.startsWith(`${root}/`));
};

/** Removes the name of a test after `::`, and `...`, which stands for all folders below. */
const toPlain = (path: string): string =>
  trimEnd(cutAt(path, "::").replace(/(?:^|\/)\.\.\.$/, ""), "/").replace(/^\.(?:\/|$)/, "");

/** A path that leads out of the folder. */
const OUTSIDE = /^[/~]|(?:^|\/)\.\.(?:\/|$)/;

const cutAt = (text: string, mark: string): string => text.split(mark, 1)[0] ?? text;

const toRelative = (path: string, folder: string | undefined): string => {
  const root = folder === undefined ? undefined : `${trimEnd(folder, "/")}/`;
  return root !== undefined && `${path}/`.startsWith(root) ? path.slice(root.length) : path;
};

/** Whether an argument, or the value of an option, is a path that leads out of the folder. */
const isOutside = (argument: string, folder: string | undefined): boolean =>
  OUTSIDE.test(toRelative(argument.replace(/^--?[\w.-]+=/, ""), folder));
