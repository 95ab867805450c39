// This program as it runs now, to start it again for work that wants a process of its own.

const isCompiled = import.meta.path.startsWith("/$bunfs/") || import.meta.path.includes("~BUN");

/** The file of this program when it runs compiled; undefined from source. */
export const ownBinary = (): string | undefined => (isCompiled ? process.execPath : undefined);

/** The compiled binary, or the runtime with the source; the verb comes behind it. */
export const ownProgram = (): string[] =>
  isCompiled
    ? [process.execPath]
    : [process.execPath, "--no-env-file", new URL("../main.ts", import.meta.url).pathname];
