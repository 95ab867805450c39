// This program as it runs now, to start it once more for work that wants a process of its own.

/** The compiled binary, or the runtime with the source; the verb comes behind it. */
export const ownProgram = (): string[] =>
  import.meta.path.startsWith("/$bunfs/") || import.meta.path.includes("~BUN")
    ? [process.execPath]
    : [process.execPath, "--no-env-file", new URL("../main.ts", import.meta.url).pathname];
