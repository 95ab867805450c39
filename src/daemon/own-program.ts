// The command with which the daemon starts itself as another verb.

/** Returns this program as it runs now: the compiled binary, or the runtime with the source. */
export const ownProgram = (): string[] =>
  import.meta.path.startsWith("/$bunfs/") || import.meta.path.includes("~BUN")
    ? [process.execPath]
    : [process.execPath, "--no-env-file", new URL("../main.ts", import.meta.url).pathname];
