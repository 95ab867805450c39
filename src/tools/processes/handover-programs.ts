// Programs that hand work to another running program of the same user, which no limit of the command's own process holds back. Pure.
import { isConstant, isTooCostly, listSimpleCommands } from "./parsed-commands.ts";
import { getBaseName } from "./program-kinds.ts";
import { isLong } from "./writing-arguments.ts";

const HANDOVER_PROGRAMS: ReadonlySet<string> = new Set(
  (
    "tmux screen zellij dtach abduco byobu emacsclient docker docker-compose podman nerdctl ctr crictl incus lxc machinectl systemd-run systemctl " +
    "at batch crontab dbus-send busctl gdbus qdbus flatpak-spawn launchctl osascript bazel bazelisk gradle gradlew mvnd watchman " +
    "socat websocat nvr supervisorctl pm2"
  ).split(" "),
);

/** The ports of a Docker engine. */
const ENGINE_ADDRESS = /^(?:\w+:\/\/)?[^/]*:237[56](?:\/|$)/;
/** This machine, as programs that run others on another machine name it. */
const LOCAL_HOST = /^(?:\w+:\/\/)?(?:[^@/]+@)?(?:localhost|127\.[\d.]+|\[?::1\]?|0\.0\.0\.0)(?=$|[:/])/;
const CURL_CONFIG = /^-[#0-46afgGiIjJklLMnNOpqRsSvVZ]*K/;

const isSocketOption = (word: string): boolean => isLong(word, ["unix-socket", "abstract-unix-socket"]);
const isNetcatSocket = (word: string): boolean => /^-[a-zA-Z\d]*U|^--unixsock/.test(word);
const isRemoteEdit = (word: string): boolean => /^--(?:server|remote)/.test(word);

/** Programs that hand work over only with such an argument. A file with options for curl can name a socket, too. */
const HANDOVER_ARGUMENTS: Readonly<Record<string, (word: string) => boolean>> = {
  curl: (word) =>
    isSocketOption(word) || isLong(word, ["config"]) || CURL_CONFIG.test(word) || ENGINE_ADDRESS.test(word),
  xh: (word) => isSocketOption(word) || ENGINE_ADDRESS.test(word),
  http: (word) => ENGINE_ADDRESS.test(word),
  wget: (word) => ENGINE_ADDRESS.test(word),
  nc: isNetcatSocket,
  ncat: isNetcatSocket,
  netcat: isNetcatSocket,
  nvim: isRemoteEdit,
  vim: isRemoteEdit,
  rsync: (word) => LOCAL_HOST.test(word),
  scp: (word) => LOCAL_HOST.test(word),
  sftp: (word) => LOCAL_HOST.test(word),
  ssh: (word) => LOCAL_HOST.test(word),
};

/** Programs that run the program in their arguments, with their options whose value is the next word. */
const WRAPPERS: Readonly<Record<string, RegExp | undefined>> = {
  command: undefined,
  env: /^(-[uC]|--unset|--chdir)$/,
  exec: /^-c?l?a$/,
  nice: /^(-n|--adjustment)$/,
  nohup: undefined,
  setsid: undefined,
  stdbuf: /^(-[ioe]|--(input|output|error))$/,
  sudo: /^(-[CDghpRTuU]|--(user|group|host|prompt|chdir|chroot|close-from|command-timeout|other-user))$/,
  timeout: /^(-[ks]|--(kill-after|signal))$/,
  xargs: /^(-[adEILnPs]|--(arg-file|delimiter|max-lines|max-args|max-procs|max-chars))$/,
};
const SHELLS: ReadonlySet<string> = new Set(["sh", "bash", "dash", "zsh"]);

/** Returns why a text may hand work over; undefined if it names no such program. */
export const findHandoverReason = (command: string): string | undefined => {
  if (isTooCostly(command)) return "the command is too long to be checked";
  const program = findProgram(command);
  return program && `"${program}" lets another program do the work, which nothing holds back`;
};

/** Returns such a program that the text runs, also by another program that runs the one in its arguments, or in the script of a shell. */
const findProgram = (command: string): string | undefined => {
  for (const { node } of listSimpleCommands(command)) {
    const words = [node.name, ...node.args].flatMap((word) =>
      word?.type === "Word" ? [isConstant(word) ? word.value : ""] : [],
    );
    const found = findInWords(words);
    if (found !== undefined) return found;
  }
  return undefined;
};

/** `words`: a program and its arguments; words that are only known when the command runs are empty. */
const findInWords = (words: readonly string[]): string | undefined => {
  let rest = words;
  let name = getBaseName(rest[0] ?? "");
  while (Object.hasOwn(WRAPPERS, name)) {
    rest = skipOptions(name, rest.slice(1));
    name = getBaseName(rest[0] ?? "");
  }
  if (HANDOVER_PROGRAMS.has(name)) return name;
  const argument =
    Object.hasOwn(HANDOVER_ARGUMENTS, name) && rest.slice(1).find((word) => HANDOVER_ARGUMENTS[name]?.(word));
  if (argument) return `${name} ${argument}`;
  const option = SHELLS.has(name) ? rest.findIndex((word) => /^-[a-zA-Z]*c/.test(word)) : -1;
  const script = option < 0 ? undefined : rest.slice(option + 1).find((word) => !/^[-+]/.test(word));
  return script === undefined ? undefined : findProgram(script);
};

/** Returns the words from the program that the wrapper runs; none if it only looks for one. */
const skipOptions = (wrapper: string, args: readonly string[]): readonly string[] => {
  if (wrapper === "command" && /^-p?[vV]/.test(args[0] ?? "")) return [];
  const start = args.findIndex(
    (word, at) => !/^-|^[A-Za-z_]\w*=|^[\d.]+[smhd]?$/.test(word) && !WRAPPERS[wrapper]?.test(args[at - 1] ?? ""),
  );
  return start < 0 ? [] : args.slice(start);
};
