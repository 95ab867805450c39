// A folder with the peculiarities of real homes: symbolic and hard links, modes, sparse files and odd names. Also describes a folder for
// comparisons.
import {
  chmodSync,
  closeSync,
  ftruncateSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";

const HOLE_BYTES = 8 * 1024 * 1024;

/** Fills the folder. `bulk`: number of incompressible bytes. */
export const makeOddTree = (root: string, bulk = 3 * 1024 * 1024): void => {
  mkdirSync(join(root, "project", ".git", "objects"), { recursive: true });
  writeFileSync(
    join(root, "project", "bulk"),
    crypto
      .getRandomValues(new Uint8Array(65_536))
      .toBase64()
      .repeat(Math.ceil(bulk / 87_384)),
  );
  writeFileSync(join(root, "project", "run"), "#!/bin/sh\n", { mode: 0o755 });
  writeFileSync(join(root, "secret"), "mine", { mode: 0o600 });
  linkSync(join(root, "secret"), join(root, "the same"));
  symlinkSync("project/run", join(root, "link"));
  symlinkSync("/nowhere/at all", join(root, "dangling"));
  mkdirSync(join(root, "empty"), { mode: 0o710 });
  for (const name of ["ü ñ 漢字", "line\nbreak", "-rf", "quote'\"", "x".repeat(200)])
    writeFileSync(join(root, name), name);
  const sparse = openSync(join(root, "sparse"), "w");
  ftruncateSync(sparse, HOLE_BYTES);
  writeSync(sparse, "end", HOLE_BYTES - 3);
  closeSync(sparse);
  chmodSync(join(root, "project"), 0o700);
  utimesSync(join(root, "project", "run"), 1_600_000_000, 1_600_000_000);
};

/** Returns one line per entry: kind, mode, time, link target, and a file's checksum. */
export const describeTree = (root: string, folder = ""): string[] =>
  readdirSync(join(root, folder))
    .sort()
    .flatMap((name) => {
      const path = join(folder, name);
      const absolutePath = join(root, path);
      const stat = lstatSync(absolutePath);
      const mode = (stat.mode & 0o7777).toString(8);
      const line = (...details: (string | number)[]): string =>
        JSON.stringify([path, mode, Math.floor(stat.mtimeMs / 1000), ...details]);
      if (stat.isSymbolicLink()) return JSON.stringify([path, "->", readlinkSync(absolutePath)]);
      if (stat.isDirectory()) return [line("folder"), ...describeTree(root, path)];
      return line(
        stat.size,
        stat.nlink,
        new Bun.CryptoHasher("sha256").update(readFileSync(absolutePath)).digest("hex"),
      );
    });
