// What a release is on the address it is published at: files with signatures alongside them, and `release.json`, which says what they are.

/** Names the version and every file of a release. */
export const RELEASE_FILE = "release.json";

export type Release = {
  readonly version: string;
  readonly files: readonly { readonly name: string; readonly size: number; readonly sha256: string }[];
};

/** Reads `release.json`; undefined for a text of another form. */
export const readRelease = (text: string): Release | undefined => {
  let release: Partial<Release> | null;
  try {
    release = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { version, files } = release ?? {};
  if (typeof version !== "string" || !Array.isArray(files) || !files.every(isFile)) return undefined;
  return { version, files };
};

const isFile = (one: Partial<Release["files"][number]> | null): boolean =>
  typeof one?.name === "string" && typeof one.size === "number" && typeof one.sha256 === "string";

/** The name of the program for a system, such as `slipway-linux-amd64.gz`. */
export const releasedName = (system: string): string =>
  `slipway-${system}${system.startsWith("windows") ? ".exe" : ""}.gz`;

/** What the signature of a file says in its trusted comment, so that one file cannot pass for another, or for one of another version. */
export const signedAs = (version: string, name: string): string => `slipway ${version} ${name}`;

/** Reads a trusted comment; undefined for one that no release has. */
export const readSignedAs = (comment: string): { version: string; name: string } | undefined => {
  const [, version, name] = /^slipway (\d+\.\d+\.\d+(?:-[\w.-]+)?(?:\+[\w.-]+)?) (\S+)$/.exec(comment) ?? [];
  return version === undefined || name === undefined ? undefined : { version, name };
};
