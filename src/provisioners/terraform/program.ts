// Finds the program that runs templates: the configured one, else tofu or terraform on the PATH.
import { isAbsolute, resolve } from "node:path";

export type Program = { readonly path: string; readonly name: "terraform" | "tofu"; readonly version: string };

/** The oldest version that prints the required output (facts/terraform 1.5). */
const MIN_VERSION = [1, 1] as const;
/** Timeout of the command `version`. */
const TIMEOUT_MS = 10_000;

export type ProgramOptions = {
  /** The path or name that the setting terraform_binary names. */
  readonly setting: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
};

/** Returns the program, or the reason why none can be used. */
export const findProgram = async ({ setting, env }: ProgramOptions): Promise<Program | string> => {
  const find = (name: string) => (isAbsolute(name) ? name : Bun.which(name, { PATH: env.PATH ?? "" }));
  const located = setting === undefined ? (find("tofu") ?? find("terraform")) : find(setting);
  if (!located) {
    return setting === undefined
      ? "Neither tofu nor terraform is on this machine's PATH. Install one, or set terraform_binary to its path."
      : `The setting terraform_binary names ${setting}, which does not exist.`;
  }
  // The path must be absolute, because the program is started in other folders.
  const path = resolve(located);
  const version = await readVersion(path, env.PATH ?? "");
  if (version === undefined) return `${path} does not report its version.`;
  if (!isAtLeast({ version }, ...MIN_VERSION))
    return `${path} is version ${version}; ${MIN_VERSION.join(".")}.0 or newer is required.`;
  return { path, name: /tofu[^/]*$/.test(path) ? "tofu" : "terraform", version };
};

const readVersion = async (path: string, PATH: string): Promise<string | undefined> => {
  try {
    const child = Bun.spawn([path, "version", "-json"], {
      env: { PATH, CHECKPOINT_DISABLE: "1" },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "ignore",
      timeout: TIMEOUT_MS,
    });
    const { terraform_version } = (await new Response(child.stdout).json()) as { terraform_version?: unknown };
    return typeof terraform_version === "string" ? terraform_version : undefined;
  } catch {
    return undefined;
  }
};

/** Returns true if the version is at least `major.minor`. */
export const isAtLeast = ({ version }: Pick<Program, "version">, major: number, minor: number): boolean => {
  const [ownMajor = 0, ownMinor = 0] = version.split(".").map(Number);
  return ownMajor > major || (ownMajor === major && ownMinor >= minor);
};
