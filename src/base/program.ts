// The running program itself, to start it again for work in a separate process.

const isCompiled = import.meta.path.startsWith("/$bunfs/") || import.meta.path.includes("~BUN");

/** Returns the path of this program when compiled; undefined when run from source. */
export const getOwnBinary = (): string | undefined => (isCompiled ? process.execPath : undefined);

/** Returns the compiled binary, or the runtime with the source file; the command is appended. */
export const getOwnCommand = (): string[] =>
  isCompiled
    ? [process.execPath]
    : [process.execPath, "--no-env-file", new URL("../main.ts", import.meta.url).pathname];
