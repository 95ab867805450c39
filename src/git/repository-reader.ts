// Reads a repository from its host without cloning it: one commit, its tree, and the few requested files. Every request goes to a checked
// address (rules RW-10 to RW-12): git is pinned to it and follows no redirects. Time and size are limited.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Clock, Timer } from "#base/clock.ts";
import type { CandidateRef } from "#base/links/repository-address.ts";
import { markSideEffect } from "#base/network/current-request.ts";
import { requireActiveNode } from "#base/network/local-reads.ts";
import { type Outbound, OutboundError } from "#base/outbound.ts";
import {
  BoundedGit,
  type GitCredential,
  GitFailure,
  RepositoryError,
  type SshAccess,
  tooManyFilesError,
} from "./bounded-git.ts";

export type ReaderOptions = {
  readonly outbound: Outbound;
  readonly clock: Clock;
  /** The server's environment, for its PATH and the locations of certificates. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** A folder for temporary copies. */
  readonly root: string;
  /** Timeout of a read. */
  readonly timeout_ms?: number;
  /** Maximum number of bytes to fetch. */
  readonly max_bytes?: number;
};

/** The SSH URL of a repository, and the private key for it. */
export type DeployKeyAccess = { readonly ssh_url: string; readonly private_key: string };

export type OpenRequest = {
  readonly url: string;
  /** The refs to try, in this order. The first one that exists is used. */
  readonly refs: readonly CandidateRef[];
  readonly credential?: GitCredential | undefined;
  /** Reads over SSH with this key, without `credential`. */
  readonly deploy_key?: DeployKeyAccess | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Fetches the contents of all files, for an archive. By default only requested files are fetched. */
  readonly isWhole?: boolean;
};

const TIMEOUT_MS = 25_000;
const MAX_BYTES = 128 * 1024 * 1024;
const MAX_LISTING_BYTES = 24 * 1024 * 1024;
/** Maximum number of files. Processing their names blocks the event loop, for about 0.3 s at this limit. */
const MAX_FILES = 200_000;
const MAX_REDIRECTS = 3;
const KNOWN_HOSTS = "known_hosts";
const NO_SSH_MESSAGE =
  "The server cannot read repositories with deploy keys: the OpenSSH client is not installed on its machine.";
const QUERY = "/info/refs?service=git-upload-pack";

export class RepositoryReader {
  readonly #options: ReaderOptions;

  constructor(options: ReaderOptions) {
    this.#options = options;
    // Removes copies of a server that was killed, with their deploy keys.
    rmSync(options.root, { recursive: true, force: true });
  }

  /** Opens the repository at the first existing reference. Rejects with RepositoryError, or the signal's reason. */
  async open({ url, refs, credential, deploy_key, signal, isWhole = false }: OpenRequest): Promise<OpenRepository> {
    const git = Bun.which("git");
    if (!git)
      throw new RepositoryError("no_git", "The server cannot read repositories: git is not installed on its machine.");
    if (deploy_key && !Bun.which("ssh")) throw new RepositoryError("no_git", NO_SSH_MESSAGE);
    if (deploy_key) {
      // `outbound` checks this for HTTP requests, but SSH does not use it.
      requireActiveNode();
      markSideEffect();
    }
    const { clock, root, env = {}, timeout_ms = TIMEOUT_MS, max_bytes = MAX_BYTES } = this.#options;
    const timeout = new AbortController();
    const host = new URL(url).host;
    const timer = clock.after(timeout_ms, () =>
      timeout.abort(new RepositoryError("unreachable", `${host} took longer than ${timeout_ms / 1000} seconds.`)),
    );
    const stopSignal = AbortSignal.any([timeout.signal, ...(signal ? [signal] : [])]);
    let folder: string | undefined;
    try {
      const webUrl = deploy_key ? url : await this.#probeHost(url, credential, stopSignal);
      const remote = deploy_key?.ssh_url ?? webUrl;
      const address = await this.#resolveAddress(remote);
      folder = this.#makeFolder(root);
      const hostCredential = new URL(webUrl).host === host ? credential : undefined;
      const ssh = deploy_key && this.#prepareSsh(folder, deploy_key);
      const gitOptions = {
        git,
        env,
        folder,
        url: remote,
        address,
        credential: hostCredential,
        ssh,
        max_bytes,
        signal: stopSignal,
      };
      const boundedGit = new BoundedGit(gitOptions);
      const ref = await fetchFirstRef(boundedGit, remote, refs, isWhole);
      const listed = await listCommit(boundedGit, host);
      return new OpenRepository(boundedGit, { url: webUrl, ref, ...listed }, { folder, timer });
    } catch (error) {
      timer.cancel();
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
      if (stopSignal.aborted) throw stopSignal.reason;
      throw error;
    }
  }

  #makeFolder(root: string): string {
    mkdirSync(root, { recursive: true, mode: 0o700 });
    return mkdtempSync(join(root, "copy-"));
  }

  #prepareSsh(folder: string, { private_key }: DeployKeyAccess): SshAccess {
    const key_file = join(folder, "deploy-key");
    writeFileSync(key_file, private_key, { mode: 0o600 });
    // The known hosts outlive the copies. The paths must be absolute, because git runs inside a copy.
    return { key_file: resolve(key_file), known_hosts: resolve(dirname(this.#options.root), KNOWN_HOSTS) };
  }

  /** Requests the repository from the host, and returns its URL after redirects. Rejects with a RepositoryError for users. */
  async #probeHost(url: string, credential: GitCredential | undefined, signal: AbortSignal): Promise<string> {
    let currentUrl = url;
    for (let redirects = 0; ; redirects++) {
      const target = new URL(currentUrl + QUERY);
      const { host } = target;
      const isSameHost = host === new URL(url).host;
      const answer = await this.#request(target, isSameHost ? credential : undefined, signal);
      void answer.body?.cancel().catch(() => {});
      const moved = parseRedirect(answer, target);
      if (moved === undefined) {
        checkAnswer(answer, { host, url: currentUrl, hasCredential: credential !== undefined });
        return currentUrl;
      }
      if (redirects >= MAX_REDIRECTS) throw new RepositoryError("unreachable", `${host} redirects too many times.`);
      currentUrl = moved;
    }
  }

  async #request(target: URL, credential: GitCredential | undefined, signal: AbortSignal): Promise<Response> {
    const headers = { "git-protocol": "version=2", "user-agent": "git/2.0 (slipway)", ...toAuthorization(credential) };
    try {
      return await this.#options.outbound.open(target, { headers, signal });
    } catch (error) {
      throw toRepositoryError(error);
    }
  }

  async #resolveAddress(url: string): Promise<string> {
    try {
      return await this.#options.outbound.resolveAddress(new URL(url));
    } catch (error) {
      throw toRepositoryError(error);
    }
  }
}

/** Returns other errors unchanged. */
const toRepositoryError = (error: unknown): unknown =>
  error instanceof OutboundError
    ? new RepositoryError(error.reason === "refused" ? "refused" : "unreachable", error.message, { cause: error })
    : error;

const toAuthorization = (credential: GitCredential | undefined): Record<string, string> =>
  credential === undefined
    ? {}
    : { authorization: `Basic ${Buffer.from(`${credential.username}:${credential.password}`).toString("base64")}` };

/** Returns the redirect's target as a repository URL; undefined for any other response. */
const parseRedirect = (answer: Response, from: URL): string | undefined => {
  const location = answer.headers.get("location");
  if (answer.status < 301 || answer.status > 308 || answer.status === 304 || location === null) return undefined;
  const target = URL.canParse(location, from.href) ? new URL(location, from.href) : undefined;
  const isSafe = target && (target.protocol === "https:" || target.protocol === from.protocol);
  // Hosts redirect to a sign-in page if they require authentication.
  if (!isSafe || !target.pathname.endsWith("/info/refs")) {
    throw new RepositoryError(
      "missing",
      `${from.host} has no repository at ${from.pathname.slice(0, -"/info/refs".length)}, or shows it only to people who have signed in.`,
    );
  }
  return `${target.origin}${target.pathname.slice(0, -"/info/refs".length)}`;
};

type RepositoryAccess = { readonly host: string; readonly url: string; readonly hasCredential: boolean };

const checkAnswer = ({ status, headers }: Response, { host, url, hasCredential }: RepositoryAccess): void => {
  const repository = new URL(url).pathname.replace(/^\//, "");
  if (status === 401 || status === 403 || status === 404) {
    throw new RepositoryError(
      "missing",
      hasCredential
        ? `${host} did not let your linked account read ${repository} (status ${status}). Check that the account has access.`
        : `${host} has no public repository ${repository} (status ${status}). If it is private, link your account at ${host} first, or create a deploy key for it.`,
    );
  }
  if (status !== 200)
    throw new RepositoryError("unreachable", `${host} answered with status ${status} for ${repository}.`);
  if (headers.get("content-type")?.startsWith("application/x-git-upload-pack-advertisement")) return;
  throw new RepositoryError("missing", `${host} does not serve a Git repository at ${repository}.`);
};

const fetchFirstRef = async (
  git: BoundedGit,
  url: string,
  refs: readonly CandidateRef[],
  isWhole: boolean,
): Promise<CandidateRef> => {
  await git.readOutput(["init", "-q", "--bare", "--template=", "."]);
  await git.readOutput(["config", "remote.origin.url", url]);
  const { host } = new URL(url);
  const filter = isWhole ? [] : ["--filter=blob:none"];
  for (const ref of refs) {
    try {
      await git.readOutput(["fetch", "-q", "--depth=1", "--no-tags", ...filter, "origin", ref.ref]);
      return ref;
    } catch (error) {
      if (!(error instanceof GitFailure)) throw error;
      if (!/couldn't find remote ref|not our ref|no such remote ref|upload-pack: not our ref/i.test(error.message)) {
        throw toSshError(url, error.message) ?? createReadError(host, getLastErrorLine(error.message));
      }
    }
  }
  const [first] = refs;
  const problem = first?.kind === "default" ? "is empty" : `has no ${describeRef(first)}`;
  throw new RepositoryError("missing", `The repository at ${host} ${problem}.`);
};

/** Returns the fetched commit and the paths of its files. Rejects with RepositoryError, also when the host has sent invalid objects. */
const listCommit = async (git: BoundedGit, host: string): Promise<Pick<FetchedRepository, "commit" | "files">> => {
  try {
    const commit = (await git.readOutput(["rev-parse", "FETCH_HEAD^{commit}"])).trim();
    const listing = await git.readOutput(
      ["ls-tree", "-r", "-z", "--full-tree", "--name-only", commit],
      MAX_LISTING_BYTES,
    );
    if (countNames(listing) > MAX_FILES) throw tooManyFilesError();
    return { commit, files: listing.split("\0").filter((path) => path !== "") };
  } catch (error) {
    throw error instanceof GitFailure ? createReadError(host, getLastErrorLine(error.message)) : error;
  }
};

const createReadError = (host: string, reason: string): RepositoryError =>
  new RepositoryError("unreachable", `Git could not read the repository from ${host}: ${reason}`);

/** Returns an SSH error as an error for users; undefined for web URLs. */
const toSshError = (url: string, output: string): RepositoryError | undefined => {
  const { protocol, host, pathname } = new URL(url);
  if (protocol !== "ssh:") return undefined;
  const repository = pathname.replace(/^\/+|\.git$/g, "");
  if (/Host key verification failed|REMOTE HOST IDENTIFICATION HAS CHANGED/i.test(output)) {
    const text = `The SSH host key of ${host} has changed. If that is expected, ask an administrator to remove the host from the files named ${KNOWN_HOSTS} in the folder repositories of the data directory.`;
    return new RepositoryError("unreachable", text);
  }
  if (/Permission denied|not found|not exist|does not appear to be a git|access denied|not permitted/i.test(output)) {
    const text = `${host} did not let your deploy key read ${repository}. Add the public key to the deploy keys of that repository, then try again.`;
    return new RepositoryError("missing", text);
  }
  // Git's message after the SSH error is always the same.
  const [first = ""] = output.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("Warning:"));
  return createReadError(host, getLastErrorLine(first.replace(/^ssh: /, "").trim()));
};

const describeRef = (ref: CandidateRef | undefined): string => {
  if (ref?.kind === "pull_request") return `pull request ${/\d+/.exec(ref.ref)?.[0]} that Git can fetch`;
  if (ref?.kind === "commit") return `commit ${ref.ref}`;
  return `branch or tag ${ref?.ref.replace(/^refs\/(?:heads|tags)\//, "")}`;
};

const getLastErrorLine = (output: string): string =>
  (output.split("\n").findLast((line) => line.trim() !== "") ?? "no reason given")
    .replace(/^(?:fatal|error): /, "")
    .slice(0, 300);

const countNames = (listing: string): number => {
  let count = 0;
  for (let at = listing.indexOf("\0"); at !== -1; at = listing.indexOf("\0", at + 1)) count += 1;
  return count;
};

type FetchedRepository = {
  readonly url: string;
  readonly ref: CandidateRef;
  readonly commit: string;
  readonly files: readonly string[];
};

/** A fetched commit of a repository. Disposing removes the copy. */
export class OpenRepository implements Disposable {
  /** The final URL, after redirects by the host. */
  readonly url: string;
  readonly ref: CandidateRef;
  readonly commit: string;
  readonly files: readonly string[];
  readonly #git: BoundedGit;
  readonly #copy: { readonly folder: string; readonly timer: Timer };

  constructor(git: BoundedGit, { url, ref, commit, files }: FetchedRepository, copy: { folder: string; timer: Timer }) {
    this.#git = git;
    this.url = url;
    this.ref = ref;
    this.commit = commit;
    this.files = files;
    this.#copy = copy;
  }

  /** Returns the text of a file; undefined if it is missing, binary or too large. Rejects with RepositoryError. */
  async read(path: string): Promise<string | undefined> {
    if (!this.files.includes(path)) return undefined;
    try {
      const text = await this.#git.readOutput(["cat-file", "blob", `${this.commit}:${path}`]);
      return text.includes("\0") ? undefined : text;
    } catch (error) {
      if (error instanceof RepositoryError && error.kind === "too_large") return undefined;
      if (!(error instanceof GitFailure)) throw error;
      const message = `${new URL(this.url).host} did not send the file ${path}: ${getLastErrorLine(error.message)}`;
      throw new RepositoryError("unreachable", message, { cause: error });
    }
  }

  /** Returns a tar of a folder by its Git object ID. Requires `isWhole`. */
  archive(tree: string): ReadableStream<Uint8Array> {
    // Includes files that the repository excludes from its releases.
    const { folder } = this.#copy;
    mkdirSync(join(folder, "info"), { recursive: true });
    writeFileSync(join(folder, "info", "attributes"), "* -export-ignore -export-subst\n");
    return this.#git.streamOutput(["archive", "--format=tar", tree]);
  }

  /** Returns the Git object ID of a file or folder; undefined if it is missing. */
  async getObjectId(path: string): Promise<string | undefined> {
    try {
      const id = await this.#git.readOutput(["rev-parse", "--verify", "-q", `${this.commit}:${path}`]);
      return id.trim() || undefined;
    } catch (error) {
      if (error instanceof GitFailure) return undefined;
      throw error;
    }
  }

  [Symbol.dispose](): void {
    this.#copy.timer.cancel();
    rmSync(this.#copy.folder, { recursive: true, force: true });
  }
}
