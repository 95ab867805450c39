// The kinds of programs that rules of chats distinguish: runners of other programs, programs whose arguments name further targets, and ordinary
// programs, whose further arguments only change how they do the same. Pure.
import { addOperands, findUnknownArguments } from "./harmless-arguments.ts";
import type { CommandWords } from "./plain-commands.ts";
import { findWideningArguments, PACKAGE_RUNNERS, takesAction } from "./widening-arguments.ts";
import { findWritingArgument } from "./writing-arguments.ts";

const toSet = (words: string): ReadonlySet<string> => new Set(words.split(/\s+/));

/** Programs that run what their arguments or their input say, which must not bypass rules about that. */
const RUNNERS = toSet(
  `sh bash dash zsh ksh fish env sudo doas su nice nohup timeout time xargs parallel find command builtin exec eval source . trap alias
  setsid stdbuf watch strace ssh busybox script flock chroot unshare nsenter ionice taskset awk gawk mawk nawk perl python python3 node ruby
  chrt numactl setarch linux32 linux64 setpriv capsh prlimit cgexec systemd-run systemd-inhibit start-stop-daemon daemonize runuser pkexec sg
  newgrp gosu su-exec tini dumb-init chpst setuidgid faketime fakeroot fakechroot proot bwrap firejail caffeinate ltrace valgrind perf gdb lldb
  hyperfine unbuffer expect chronic ifne mispipe logsave rlwrap entr watchexec nodemon concurrently foreman honcho dotenv
  tmux screen zellij dtach abduco byobu dbus-run-session xvfb-run ssh-agent at batch php lua luajit tclsh R Rscript julia osascript pwsh
  ed ex vi vim nvim emacs m4 toybox nix-shell`,
);
/** Subcommands of any program that run another program, or code. */
const RUNNING_SUBCOMMANDS = toSet("run exec x dlx eval shell repl develop bisect tool");

const EXACT_ONLY = toSet(
  `rm rmdir unlink shred mv cp ln install dd tee truncate chmod chown chgrp kill pkill killall mkdir touch make docker podman nerdctl kubectl npx bunx pnpx
  uvx pipx`,
);
const INTERPRETERS = toSet("sh bash dash zsh ksh fish perl python python3 node ruby");
/** Programs that read commands or arguments from their input. */
const STDIN_RUNNERS = toSet("xargs parallel ssh su at batch");

const ORDINARY = toSet(
  `[ test true false : echo printf pwd cd ls dir cat tac head tail nl wc cut column paste join comm cmp diff grep egrep fgrep rg sort shuf uniq tr
  fold fmt rev seq basename dirname realpath readlink stat file du df date cal which type whoami id groups hostname uname uptime free ps pgrep
  tree fd jq yq sed xxd od hexdump strings iconv base64 cksum sum md5sum sha1sum sha256sum sha512sum expr sleep zcat
  pytest tsc eslint prettier vitest jest mocha mypy black rustfmt gofmt shellcheck`,
);
/** Subcommands whose further arguments only change how they do the same. */
const ORDINARY_SUBCOMMANDS: Readonly<Record<string, ReadonlySet<string>>> = {
  git: toSet(
    `add blame branch cat-file cherry-pick commit describe diff fetch grep log ls-files ls-remote ls-tree merge pull push
    reflog remote rev-list rev-parse revert shortlog show stash status switch tag worktree`,
  ),
  npm: toSet("test start run ls list outdated audit view"),
  pnpm: toSet("test start run ls list outdated audit view"),
  yarn: toSet("test start run list outdated audit info"),
  biome: toSet("check ci format lint"),
  bun: toSet("test run"),
  cargo: toSet("build check test bench clippy fmt doc tree"),
  go: toSet("build test vet fmt list doc version mod"),
  ruff: toSet("check format"),
  terraform: toSet("plan validate fmt"),
  tofu: toSet("plan validate fmt"),
};

/** Returns the name of a program without its path. */
export const getBaseName = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

/** Whether a command runs another program, or code, that its arguments or its input name. */
export const isRunner = ([program = "", ...args]: CommandWords): boolean => {
  const name = getBaseName(program);
  if (RUNNERS.has(name)) return true;
  if (ORDINARY.has(name)) return false;
  const [subcommand = "", action] = args.filter((word) => !word.startsWith("-"));
  const isScript = PACKAGE_RUNNERS.has(name) && subcommand === "run";
  return action === "foreach" || (RUNNING_SUBCOMMANDS.has(subcommand) && !isScript);
};

/** Returns the first words of a command: the program with its subcommand, script or first argument, or all words before an option. */
export const toFirstWords = (words: CommandWords): CommandWords => {
  const [program = "", first] = words;
  if (first?.startsWith("-")) return words;
  return words.slice(0, PACKAGE_RUNNERS.has(getBaseName(program)) && first === "run" ? 3 : 2);
};

/**
 * Returns the first words of a command with which only commands of the same kind begin; undefined if further arguments could be other targets
 * or another program, if one of the command is not known to be harmless, or if the program is unknown, as scripts of the workspace are.
 */
export const findKindWords = (words: CommandWords): CommandWords | undefined => {
  const [program = "", ...args] = words;
  const name = getBaseName(program);
  if (findWritingArgument(name, args) !== undefined || EXACT_ONLY.has(name) || isRunner(words)) return undefined;
  if (findWideningArguments(name, args).length > 0) return undefined;
  const first = findKnownWords(name, words);
  const kind = first && addOperands(words, first, name);
  return kind && findUnknownArguments(words, kind, name).length === 0 ? kind : undefined;
};

const findKnownWords = (name: string, words: CommandWords): CommandWords | undefined => {
  const [first = "-", second = "-"] = words.slice(1);
  if (ORDINARY.has(name)) return toFirstWords(words);
  if (!Object.hasOwn(ORDINARY_SUBCOMMANDS, name) || !ORDINARY_SUBCOMMANDS[name]?.has(first)) return undefined;
  if (takesAction(name, first)) return second.startsWith("-") ? undefined : words.slice(0, 3);
  const hasScript = first !== "run" || !second.startsWith("-");
  return hasScript ? toFirstWords(words) : undefined;
};

/** True if the program to run is in the command's input instead of its arguments: a rule about the arguments would allow anything. */
export const readsProgramFromInput = (words: CommandWords): boolean => {
  if (!isRunner(words)) return false;
  const names = words.map(getBaseName);
  if (names.some((name) => STDIN_RUNNERS.has(name))) return true;
  const last = names.findLastIndex((name) => INTERPRETERS.has(name));
  const rest = words.slice(Math.max(last, 0) + 1);
  if (rest.some((word) => word === "-" || /^-[a-z]*s$/.test(word))) return true;
  return !rest.some((word) => /^[^-\d][^=]*$/.test(word));
};
