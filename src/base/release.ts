// Describes a published release: files with signatures next to them, and `release.json`, which lists them.

import { parseJson } from "./json/read.ts";

/** Contains the version and all files of a release. */
export const RELEASE_FILE = "release.json";

export type Release = {
  readonly version: string;
  readonly files: readonly { readonly name: string; readonly size: number; readonly sha256: string }[];
};

/** Parses `release.json`; undefined if it has another format. */
export const readRelease = (text: string): Release | undefined => {
  let release: Partial<Release> | null;
  try {
    release = parseJson(text) as Partial<Release> | null;
  } catch {
    return undefined;
  }
  const { version, files } = release ?? {};
  if (typeof version !== "string" || !Array.isArray(files) || !files.every(isFile)) return undefined;
  return { version, files };
};

const isFile = (one: Partial<Release["files"][number]> | null): boolean =>
  typeof one?.name === "string" && typeof one.size === "number" && typeof one.sha256 === "string";

/** Returns the file name of the program for a system, such as `slipway-linux-amd64.gz`. */
export const toReleaseFileName = (system: string): string =>
  `slipway-${system}${system.startsWith("windows") ? ".exe" : ""}.gz`;

/** Returns the trusted comment of a file's signature, which binds it to its name and version. */
export const formatTrustedComment = (version: string, name: string): string => `slipway ${version} ${name}`;

/** Parses a trusted comment; undefined if it is not from a release. */
export const parseTrustedComment = (comment: string): { version: string; name: string } | undefined => {
  const [, version, name] = /^slipway (\d+\.\d+\.\d+(?:-[\w.-]+)?(?:\+[\w.-]+)?) (\S+)$/.exec(comment) ?? [];
  return version === undefined || name === undefined ? undefined : { version, name };
};
