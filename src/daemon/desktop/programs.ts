// Finds the installed programs for a desktop on this machine and builds their commands (rule DT-1).

import type { SocketTarget } from "../connection/tunnel-socket.ts";
import type { Environment } from "../environment.ts";

/** One program that is both display and VNC server, or one program for each. */
export type DesktopKind = "xvnc" | "xvfb";

const SCREEN_SIZE = "1280x800";
/** Desktop sessions in order of preference; the first installed one is used. */
const SESSION_PROGRAMS = ["startxfce4", "startlxqt", "openbox-session", "fluxbox", "icewm-session", "twm", "xterm"];

export const findDesktopKind = (PATH: string): DesktopKind | undefined => {
  const has = (name: string): boolean => Bun.which(name, { PATH }) !== null;
  if (has("Xvnc")) return "xvnc";
  return has("Xvfb") && has("x11vnc") ? "xvfb" : undefined;
};

/** Returns the server that `SLIPWAY_DESKTOP_VNC` names: a port of this machine, `host:port`, or a socket path. */
export const parseVncServer = ({ SLIPWAY_DESKTOP_VNC = "" }: Environment): SocketTarget | undefined => {
  if (SLIPWAY_DESKTOP_VNC === "") return undefined;
  if (SLIPWAY_DESKTOP_VNC.startsWith("/")) return { unix: SLIPWAY_DESKTOP_VNC };
  const [, hostname = "127.0.0.1", port] = /^(?:(.+):)?(\d{1,5})$/.exec(SLIPWAY_DESKTOP_VNC) ?? [];
  return port === undefined ? undefined : { hostname, port: Number(port) };
};

type Files = { readonly socket: string; readonly authority: string };

/**
 * Returns a command that prints the display number and a line end once it is ready. The display accepts only local programs with the key.
 */
export const buildDisplayCommand = (kind: DesktopKind, { socket, authority }: Files): string[] => {
  const common = ["-displayfd", "1", "-auth", authority, "-nolisten", "tcp"];
  if (kind === "xvfb") return ["Xvfb", ...common, "-screen", "0", `${SCREEN_SIZE}x24`];
  const open = ["-rfbunixpath", socket, "-rfbport", "-1", "-SecurityTypes", "None"];
  return ["Xvnc", ...common, ...open, "-geometry", SCREEN_SIZE, "-depth", "24", "-AlwaysShared"];
};

export const buildVncCommand = ({ socket, authority }: Files, display: string): string[] => [
  ...["x11vnc", "-display", `:${display}`, "-auth", authority, "-unixsock", socket, "-rfbport", "0"],
  ...["-nopw", "-shared", "-forever", "-quiet", "-noxrecord"],
];

/** Returns the command in `SLIPWAY_DESKTOP_SESSION`, or an installed session. */
export const findSession = ({ PATH = "", SLIPWAY_DESKTOP_SESSION = "" }: Environment): string[] | undefined => {
  if (SLIPWAY_DESKTOP_SESSION !== "") return ["sh", "-c", SLIPWAY_DESKTOP_SESSION];
  const session = SESSION_PROGRAMS.find((name) => Bun.which(name, { PATH }) !== null);
  return session === undefined ? undefined : [session];
};
