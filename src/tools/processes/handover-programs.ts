// Programs that hand work to another running program of the same user, which no limit of the command's own process holds back. Pure.
import { parseCommands } from "./parsed-commands.ts";
import { getBaseName, isRunner } from "./program-kinds.ts";

const HANDOVER_PROGRAMS: ReadonlySet<string> = new Set(
  (
    "tmux screen zellij dtach abduco byobu emacsclient docker docker-compose podman nerdctl ctr crictl incus lxc machinectl systemd-run systemctl " +
    "at batch crontab dbus-send busctl gdbus qdbus flatpak-spawn launchctl osascript bazel bazelisk gradle gradlew mvnd watchman"
  ).split(" "),
);

/** Returns such a program that the text runs, or names as the first argument of a program that runs others. */
export const findHandoverProgram = (command: string): string | undefined =>
  (parseCommands(command) ?? [])
    .flatMap(([program = "", argument = ""]) => [program, ...(isRunner([program]) ? [getBaseName(argument)] : [])])
    .find((name) => HANDOVER_PROGRAMS.has(name));
