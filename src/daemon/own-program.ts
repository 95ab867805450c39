// The command that the daemon uses to run another `slipway` subcommand.

/** Returns the command of the running program: the compiled binary, or the runtime with the source. */
export const getOwnCommand = (): string[] =>
  import.meta.path.startsWith("/$bunfs/") || import.meta.path.includes("~BUN")
    ? [process.execPath]
    : [process.execPath, "--no-env-file", new URL("../main.ts", import.meta.url).pathname];
