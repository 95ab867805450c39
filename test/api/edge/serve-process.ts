// A real `serve` process, from source or the compiled binary, for tests of signals and output.
import { ensureDatabase, usesPostgres } from "#test/support/postgres-server.ts";
import { toProgramCommand } from "#test/support/program.ts";
import { ADMIN, readAnnouncedUrl } from "#test/support/server.ts";

export type ServeProcess = AsyncDisposable & {
  readonly url: URL;
  readonly child: Bun.Subprocess<"ignore", "pipe", "pipe">;
  /** Everything written to standard error; complete once the process has ended. */
  readonly errors: Promise<string>;
};

/** Starts `serve` on a free port, with the data in `directory`, and waits until it listens. Killed when disposed. */
export const startServe = async (
  directory: string,
  env: Record<string, string> = {},
  { openFiles, through = [] }: { openFiles?: number; through?: readonly string[] } = {},
): Promise<ServeProcess> => {
  const database: Record<string, string> = usesPostgres
    ? { SLIPWAY_DATABASE_URL: await ensureDatabase(`${directory}/data`) }
    : {};
  const limitCommand = openFiles === undefined ? [] : ["/bin/sh", "-c", `ulimit -n ${openFiles} && exec "$@"`, "sh"];
  const child = Bun.spawn([...through, ...limitCommand, ...toProgramCommand(), "serve"], {
    cwd: directory,
    env: {
      PATH: process.env.PATH,
      HOME: directory,
      TEST_RUN_MARK: process.env.TEST_RUN_MARK,
      SLIPWAY_DATA_DIR: `${directory}/data`,
      SLIPWAY_ADDRESS: "127.0.0.1:0",
      SLIPWAY_ADMIN_EMAIL: ADMIN.email,
      SLIPWAY_ADMIN_USERNAME: ADMIN.username,
      SLIPWAY_ADMIN_PASSWORD: ADMIN.password,
      ...database,
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const errors = child.stderr.text();
  return {
    url: await readAnnouncedUrl(child.stdout).catch(async (error: Error) => {
      throw new Error(`${error.message}${await errors}`);
    }),
    child,
    errors,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
};
