// Reports to the client how an SSH session's command has ended. [WN-2]
import type ssh2 from "ssh2";
import type { RunOptions } from "./running.ts";

/** Used if there is no exit code. */
export const DEFAULT_EXIT_CODE = 255;

export const sendExit = (
  channel: ssh2.ServerChannel,
  { exitCode, signalCode }: { exitCode: number | null; signalCode: NodeJS.Signals | number | null },
  exited: RunOptions["exited"],
): void => {
  const reason = signalCode ? `the program was ended by ${signalCode}` : "";
  exited(reason, exitCode ?? DEFAULT_EXIT_CODE);
  if (channel.destroyed) return;
  if (signalCode) channel.exit(String(signalCode).replace("SIG", ""), false, "");
  else channel.exit(exitCode ?? DEFAULT_EXIT_CODE);
  channel.end();
};
