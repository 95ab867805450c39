// A real S3 server (versitygw) on a temp folder, with one bucket.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { needs } from "./needs.ts";
import { tempDirectory } from "./server.ts";
import { until } from "./until.ts";

const BUCKET = "homes";
const ACCESS_KEY = "AKIATESTHOMES";
const SECRET_KEY = "secret/of+the/homes";
const REGION = "eu-test-1";

export type S3Server = AsyncDisposable & {
  /** The folder that contains the objects as files. */
  readonly folder: string;
  readonly settings: Record<string, string>;
};

export const startS3Server = async (): Promise<S3Server> => {
  const directory = tempDirectory();
  const folder = join(directory.path, BUCKET);
  mkdirSync(folder);
  const probe = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
  const { port } = probe;
  await probe.stop(true);
  const keys = ["--access", ACCESS_KEY, "--secret", SECRET_KEY, "--region", REGION];
  const child = Bun.spawn(
    [needs.versitygw.file, ...keys, "--port", `127.0.0.1:${port}`, "--quiet", "posix", directory.path],
    {
      env: {},
      stdin: "ignore",
      stdout: "ignore",
      stderr: "ignore",
    },
  );
  const endpoint = `http://127.0.0.1:${port}`;
  await until(
    () =>
      fetch(endpoint).then(
        () => true,
        () => false,
      ),
    { what: "the S3 server to answer" },
  );
  return {
    folder,
    settings: {
      SLIPWAY_HOME_BACKUP_S3_ENDPOINT: endpoint,
      SLIPWAY_HOME_BACKUP_S3_BUCKET: BUCKET,
      SLIPWAY_HOME_BACKUP_S3_REGION: REGION,
      SLIPWAY_HOME_BACKUP_S3_ACCESS_KEY: ACCESS_KEY,
      SLIPWAY_HOME_BACKUP_S3_SECRET_KEY: SECRET_KEY,
    },
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await child.exited;
      directory[Symbol.dispose]();
    },
  };
};
