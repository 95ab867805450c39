// Runs git for untrusted repositories: it can reach one address of one host, follows no redirects, reads no settings of this machine, and
// has limits of time, size and memory.
import { isIP } from "node:net";
import { shareOfMemory } from "#base/system/memory.ts";

/** Explains to the user why a repository cannot be read. */
export class RepositoryError extends Error {
  override readonly name = "RepositoryError";
  readonly kind: "refused" | "missing" | "unreachable" | "too_large" | "no_git";
  constructor(kind: RepositoryError["kind"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}

export const tooManyFilesError = (): RepositoryError =>
  new RepositoryError("too_large", "The repository has too many files to be read here.");

/** Thrown when git fails. The message is git's error output. */
export class GitFailure extends Error {
  override readonly name = "GitFailure";
}

/** The credentials that git sends to the host. */
export type GitCredential = { readonly username: string; readonly password: string };

/** The SSH key for the host, and the known_hosts file. */
export type SshAccess = { readonly key_file: string; readonly known_hosts: string };

export type BoundedGitOptions = {
  /** Path of the git program. */
  readonly git: string;
  /** The server's environment. Only PATH and the locations of certificates are passed on. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly folder: string;
  readonly url: string;
  /** The only address that git may use for the URL's host. */
  readonly address: string;
  readonly credential: GitCredential | undefined;
  /** Set for SSH URLs. */
  readonly ssh?: SshAccess | undefined;
  /** Maximum size of a file that git may write. */
  readonly max_bytes: number;
  readonly signal: AbortSignal;
};

const MAX_OUTPUT_BYTES = 512 * 1024;
const MAX_ERROR_BYTES = 4_096;
const MIB = 1024 * 1024;
/** Limit for each process of git. A host can send a small pack with an object of gigabytes, which git would allocate as a whole. */
const MAX_MEMORY_BYTES = Math.max(128 * MIB, Math.min(512 * MIB, shareOfMemory(1 / 16)));

/** A credential helper, which reads user and password from its environment. */
const CREDENTIAL_HELPER = '!f() { echo "username=$SLIPWAY_GIT_USER"; echo "password=$SLIPWAY_GIT_PASSWORD"; }; f';

export class BoundedGit {
  readonly #options: BoundedGitOptions;
  readonly #env: Readonly<Record<string, string>>;

  constructor(options: BoundedGitOptions) {
    this.#options = options;
    this.#env = buildEnvironment(options);
  }

  /** Returns git's output. Rejects with GitFailure, with RepositoryError if the output is too large, or with the signal's reason. */
  async readOutput(args: readonly string[], max = MAX_OUTPUT_BYTES): Promise<string> {
    const { max_bytes, signal } = this.#options;
    const child = this.#start(args);
    const [output, errors] = await Promise.all([
      collectOutput(child.stdout, max, () => endGroup(child.pid)),
      collectOutput(child.stderr, MAX_ERROR_BYTES),
    ]);
    const code = await child.exited;
    signal.throwIfAborted();
    if (output.isOver) throw tooManyFilesError();
    if (code === 0) return output.text;
    if (/out of memory|cannot allocate memory|mmap failed|unable to create .{0,80}thread/i.test(errors.text)) {
      const size = `${Math.floor(MAX_MEMORY_BYTES / MIB)} MiB`;
      throw new RepositoryError("too_large", `Git needs more than ${size} of memory to read the repository.`);
    }
    if (child.signalCode === "SIGXFSZ" || /file size limit exceeded|file too large|signal 25/i.test(errors.text)) {
      const size = `${Math.floor(max_bytes / MIB)} MiB`;
      throw new RepositoryError("too_large", `The repository is larger than ${size}, even without its history.`);
    }
    throw new GitFailure(errors.text.trim());
  }

  /** Streams git's output. */
  streamOutput(args: readonly string[]): ReadableStream<Uint8Array> {
    const child = this.#start(args);
    void new Response(child.stderr).text().catch(() => {});
    return child.stdout;
  }

  #start(args: readonly string[]) {
    const { git, folder, max_bytes, signal } = this.#options;
    signal.throwIfAborted();
    // The shell's limits are in blocks of 512 bytes for files, and in KiB for memory (ignored on systems without this limit).
    const limits = `ulimit -f ${Math.ceil(max_bytes / 512)}; ulimit -d ${Math.floor(MAX_MEMORY_BYTES / 1024)} 2>/dev/null`;
    const child = Bun.spawn(["/bin/sh", "-c", `${limits}; exec "$0" "$@"`, git, ...args], {
      cwd: folder,
      env: this.#env,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      // A separate process group, because git's helper processes may outlive git.
      detached: true,
    });
    const end = (): void => endGroup(child.pid);
    signal.addEventListener("abort", end, { once: true });
    void child.exited.then(() => signal.removeEventListener("abort", end));
    return child;
  }
}

const buildEnvironment = ({
  env,
  folder,
  url,
  address,
  credential,
  ssh,
}: BoundedGitOptions): Record<string, string> => {
  const { hostname, port, protocol } = new URL(url);
  const name = hostname.replace(/^\[|\]$/g, "");
  const host = isIP(address) === 6 ? `[${address}]` : address;
  const settings: [string, string][] = [
    ["http.followRedirects", "false"],
    ["core.hooksPath", "/dev/null"],
    ["core.attributesFile", "/dev/null"],
    ["protocol.version", "2"],
    ["gc.auto", "0"],
    // Uses less memory than by default: large files are streamed, and only one thread unpacks.
    ["core.bigFileThreshold", "1m"],
    ["core.deltaBaseCacheLimit", "16m"],
    ["pack.threads", "1"],
    ["credential.helper", credential ? CREDENTIAL_HELPER : ""],
  ];
  if (isIP(name) === 0) {
    settings.push(["http.curloptResolve", `${name}:${port || (protocol === "https:" ? 443 : 80)}:${host}`]);
  }
  const { SSL_CERT_FILE, SSL_CERT_DIR, GIT_SSL_CAINFO } = env;
  const authorities = Object.entries({ SSL_CERT_FILE, SSL_CERT_DIR, GIT_SSL_CAINFO });
  return {
    PATH: env.PATH || "/usr/local/bin:/usr/bin:/bin",
    HOME: folder,
    LC_ALL: "C",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_TERMINAL_PROMPT: "0",
    GIT_ALLOW_PROTOCOL: ssh ? "ssh" : "http:https",
    ...(ssh ? { GIT_SSH_VARIANT: "ssh", GIT_SSH_COMMAND: buildSshCommand(url, address, ssh) } : {}),
    SLIPWAY_GIT_USER: credential?.username ?? "",
    SLIPWAY_GIT_PASSWORD: credential?.password ?? "",
    ...Object.fromEntries(authorities.flatMap(([name, value]) => (value ? [[name, value]] : []))),
    GIT_CONFIG_COUNT: String(settings.length),
    ...Object.fromEntries(settings.map(([key], i) => [`GIT_CONFIG_KEY_${i}`, key])),
    ...Object.fromEntries(settings.map(([, value], i) => [`GIT_CONFIG_VALUE_${i}`, value])),
  };
};

/**
 * Returns a command that offers only this key and connects only to this address. The first connection stores the host's key by host name.
 */
const buildSshCommand = (url: string, address: string, { key_file, known_hosts }: SshAccess): string => {
  const { hostname, port } = new URL(url);
  const escapePercent = (text: string): string => text.replaceAll("%", "%%");
  const settings = {
    HostName: address,
    // In ssh's own format for hosts with a non-default port.
    HostKeyAlias: port === "" || port === "22" ? hostname : `[${hostname}]:${port}`,
    CheckHostIP: "no",
    IdentityFile: escapePercent(key_file),
    IdentitiesOnly: "yes",
    IdentityAgent: "none",
    BatchMode: "yes",
    ConnectTimeout: "15",
    UserKnownHostsFile: escapePercent(known_hosts),
    StrictHostKeyChecking: "accept-new",
    UpdateHostKeys: "no",
  };
  const options = Object.entries(settings).map(
    ([name, value]) => `-o '${`${name}="${value}"`.replaceAll("'", "'\\''")}'`,
  );
  return `ssh -F /dev/null ${options.join(" ")}`;
};

const endGroup = (pid: number): void => {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The process has already ended.
  }
};

/** Returns the first `max` bytes of a stream, and reads it to the end. */
const collectOutput = async (
  stream: ReadableStream<Uint8Array>,
  max: number,
  onLimit: () => void = () => {},
): Promise<{ text: string; isOver: boolean }> => {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of stream) {
    const before = size;
    size += chunk.byteLength;
    if (size <= max) chunks.push(chunk);
    else if (before <= max) onLimit();
  }
  return { text: Buffer.concat(chunks).toString("utf8"), isOver: size > max };
};
