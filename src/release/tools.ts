// Runs tools and creates archives for a release. Archives do not depend on the times, owners and order of files, so the same source gives
// the same bytes.
import { createReadStream, createWriteStream, readdirSync } from "node:fs";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";

/** Thrown when this machine cannot build a part of a release. The message has the reason. */
export class UnavailableError extends Error {
  override readonly name = "UnavailableError";
}

const MAX_ERROR_LINES = 12;

export type RunOptions = { cwd?: string; env?: Record<string, string | undefined> };

/** Runs a program and returns its output. Throws UnavailableError if it does not exist, or an Error with its output if it fails. */
export const runTool = async (command: readonly string[], { cwd, env }: RunOptions = {}): Promise<string> => {
  const [name = ""] = command;
  if (Bun.which(name, env?.PATH === undefined ? {} : { PATH: env.PATH }) === null) {
    throw new UnavailableError(`${name} is not installed`);
  }
  const child = Bun.spawn([...command], {
    stdio: ["ignore", "pipe", "pipe"],
    ...(cwd === undefined ? {} : { cwd }),
    ...(env === undefined ? {} : { env }),
  });
  const [output, errors, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code === 0) return output;
  const lines = `${output}${errors}`.trim().split("\n").slice(-MAX_ERROR_LINES).join("\n");
  throw new Error(`${command.slice(0, 2).join(" ")} exited with ${code}:\n${lines}`);
};

/** Packs `folder` as a tar: owned by root, sorted by name, with the time `epoch` (seconds). */
export const packFolder = (folder: string, target: string, epoch: number): Promise<string> =>
  runTool([
    ...["tar", "--create", `--file=${target}`, `--directory=${folder}`, "--sort=name", `--mtime=@${epoch}`],
    ...["--owner=0", "--group=0", "--numeric-owner", "--format=posix"],
    ...["--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime"],
    ...readdirSync(folder).sort(),
  ]);

/** Compresses a file with gzip, without its name and time. Returns the SHA-256 of the uncompressed content. */
export const gzipFile = async (source: string, target: string): Promise<string> => {
  const sha256 = new Bun.CryptoHasher("sha256");
  const hasher = new Transform({
    transform(chunk: Uint8Array, _encoding, done) {
      sha256.update(chunk);
      done(null, chunk);
    },
  });
  await pipeline(
    createReadStream(source, { highWaterMark: 1 << 20 }),
    hasher,
    createGzip({ level: 6 }),
    createWriteStream(target),
  );
  return sha256.digest("hex");
};

/** Returns the SHA-256 of a file, in hexadecimal. */
export const hashFile = async (path: string): Promise<string> => {
  const hasher = new Bun.CryptoHasher("sha256");
  for await (const chunk of Bun.file(path).stream()) hasher.update(chunk);
  return hasher.digest("hex");
};
