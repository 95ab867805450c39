// Inputs shared by all parts of a release: paths, and the programs that were built.
import type { TargetSystem } from "#src/build.ts";

export type ReleaseInputs = {
  /** The source tree. */
  readonly root: string;
  /** The output folder. */
  readonly out: string;
  /** A temporary folder. */
  readonly scratch: string;
  readonly version: string;
  /** The timestamp of everything inside archives, in seconds. */
  readonly epoch: number;
  /** The environment of child processes. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The built programs by system. */
  readonly programs: Readonly<Partial<Record<TargetSystem, string>>>;
  /** The public key of the release, as minisign prints it; empty if it is not signed. */
  readonly publicKey: string;
  /** The URL where the release will be published, such as `https://downloads.example.com/slipway`. */
  readonly url: string | undefined;
};
