// Git as the server runs it for repositories of strangers: it reaches one address of one host, follows no redirect, reads no settings of
// this machine, and ends at a limit of time or size.
import { isIP } from "node:net";

/** Why a repository cannot be read, in words for whoever asked. */
export class RepositoryError extends Error {
  override readonly name = "RepositoryError";
  readonly kind: "refused" | "missing" | "unreachable" | "too_large" | "no_git";
  constructor(kind: RepositoryError["kind"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}

/** What git has said as it failed. */
export class GitFailure extends Error {
  override readonly name = "GitFailure";
}

/** What git shows to the host. */
export type GitCredential = { readonly username: string; readonly password: string };

/** A key that git shows to the host over ssh, and the file that remembers the keys of hosts. */
export type SshAccess = { readonly key_file: string; readonly known_hosts: string };

export type BoundedGitOptions = {
  /** The program. */
  readonly git: string;
  /** The variables of the server, of which PATH and the places of certificates are handed on. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly folder: string;
  readonly url: string;
  /** The only address that the URL's host has for git. */
  readonly address: string;
  readonly credential: GitCredential | undefined;
  /** Where the URL is one of ssh. */
  readonly ssh?: SshAccess | undefined;
  /** Bytes of the largest file that may be written. */
  readonly max_bytes: number;
  readonly signal: AbortSignal;
};

const MAX_ANSWER = 512 * 1024;
const MAX_WORDS = 4_096;
const MIB = 1024 * 1024;

/** Asked by git for user and password; what it answers is in its environment alone. */
const HELPER = '!f() { echo "username=$SLIPWAY_GIT_USER"; echo "password=$SLIPWAY_GIT_PASSWORD"; }; f';

export class BoundedGit {
  readonly #options: BoundedGitOptions;
  readonly #env: Readonly<Record<string, string>>;

  constructor(options: BoundedGitOptions) {
    this.#options = options;
    this.#env = environmentOf(options);
  }

  /** What git prints. Rejects with GitFailure, RepositoryError when it is too much, or the signal's reason. */
  async text(args: readonly string[], max = MAX_ANSWER): Promise<string> {
    const { max_bytes, signal } = this.#options;
    const child = this.#start(args);
    const [out, words] = await Promise.all([
      collected(child.stdout, max, () => endGroup(child.pid)),
      collected(child.stderr, MAX_WORDS),
    ]);
    const code = await child.exited;
    signal.throwIfAborted();
    if (out.isOver) throw new RepositoryError("too_large", "The repository has too many files to be read here.");
    if (code === 0) return out.text;
    if (child.signalCode === "SIGXFSZ" || /file size limit exceeded|file too large|signal 25/i.test(words.text)) {
      const size = `${Math.floor(max_bytes / MIB)} MiB`;
      throw new RepositoryError("too_large", `The repository is larger than ${size}, even without its history.`);
    }
    throw new GitFailure(words.text.trim());
  }

  /** What git prints, as it comes. */
  stream(args: readonly string[]): ReadableStream<Uint8Array> {
    const child = this.#start(args);
    void new Response(child.stderr).text().catch(() => {});
    return child.stdout;
  }

  #start(args: readonly string[]) {
    const { git, folder, max_bytes, signal } = this.#options;
    signal.throwIfAborted();
    // The shell counts in blocks of 512 bytes.
    const blocks = String(Math.ceil(max_bytes / 512));
    const child = Bun.spawn(["/bin/sh", "-c", 'ulimit -f "$0"; exec "$@"', blocks, git, ...args], {
      cwd: folder,
      env: this.#env,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      // A group of its own: git has helpers that would outlive it.
      detached: true,
    });
    const end = (): void => endGroup(child.pid);
    signal.addEventListener("abort", end, { once: true });
    void child.exited.then(() => signal.removeEventListener("abort", end));
    return child;
  }
}

const environmentOf = ({ env, folder, url, address, credential, ssh }: BoundedGitOptions): Record<string, string> => {
  const { hostname, port, protocol } = new URL(url);
  const name = hostname.replace(/^\[|\]$/g, "");
  const place = isIP(address) === 6 ? `[${address}]` : address;
  const settings: [string, string][] = [
    ["http.followRedirects", "false"],
    ["core.hooksPath", "/dev/null"],
    ["core.attributesFile", "/dev/null"],
    ["protocol.version", "2"],
    ["gc.auto", "0"],
    ["credential.helper", credential ? HELPER : ""],
  ];
  if (isIP(name) === 0) {
    settings.push(["http.curloptResolve", `${name}:${port || (protocol === "https:" ? 443 : 80)}:${place}`]);
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
    ...(ssh ? { GIT_SSH_VARIANT: "ssh", GIT_SSH_COMMAND: sshCommand(url, address, ssh) } : {}),
    SLIPWAY_GIT_USER: credential?.username ?? "",
    SLIPWAY_GIT_PASSWORD: credential?.password ?? "",
    ...Object.fromEntries(authorities.flatMap(([name, value]) => (value ? [[name, value]] : []))),
    GIT_CONFIG_COUNT: String(settings.length),
    ...Object.fromEntries(settings.map(([key], at) => [`GIT_CONFIG_KEY_${at}`, key])),
    ...Object.fromEntries(settings.map(([, value], at) => [`GIT_CONFIG_VALUE_${at}`, value])),
  };
};

/** The key is all that is shown, the address all that is reached; the host is known by its name from the first time on. */
const sshCommand = (url: string, address: string, { key_file, known_hosts }: SshAccess): string => {
  const { hostname, port } = new URL(url);
  const path = (text: string): string => text.replaceAll("%", "%%");
  const settings = {
    HostName: address,
    // As ssh itself names a host with another port.
    HostKeyAlias: port === "" || port === "22" ? hostname : `[${hostname}]:${port}`,
    CheckHostIP: "no",
    IdentityFile: path(key_file),
    IdentitiesOnly: "yes",
    IdentityAgent: "none",
    BatchMode: "yes",
    ConnectTimeout: "15",
    UserKnownHostsFile: path(known_hosts),
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
    // It has ended already.
  }
};

/** The first `max` bytes of a stream, which is read to its end. */
const collected = async (
  stream: ReadableStream<Uint8Array>,
  max: number,
  over: () => void = () => {},
): Promise<{ text: string; isOver: boolean }> => {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of stream) {
    const before = size;
    size += chunk.byteLength;
    if (size <= max) chunks.push(chunk);
    else if (before <= max) over();
  }
  return { text: Buffer.concat(chunks).toString("utf8"), isOver: size > max };
};
