// Parses a pasted link to a repository: the clone URL, and the branch, commit, pull request or folder that the page showed. Pure.
// Recognizes links of GitHub, GitLab, Gitea and Bitbucket by their shape, so that self-hosted instances work too.

export type RepositoryAddress = {
  /** The URL to clone: http or https, without a user. */
  readonly url: string;
  /** The last part of the path, used as a display name and folder name. */
  readonly name: string;
  readonly branch?: string;
  readonly commit?: string;
  readonly pull_request?: number;
  /** A folder in the repository. */
  readonly path?: string;
  /**
   * A branch, possibly followed by a folder: `feature/x/docs`. Only the host knows where the branch ends. Used instead of `branch` and
   * `path`.
   */
  readonly branch_and_path?: string;
};

/** Maximum length of a link. */
export const MAX_ADDRESS = 2_048;

const HOST = /^[\w[]/;
const SCP = /^(?:[\w.-]+@)?(\w[\w-]*(?:\.[\w-]+)+):(?!\/\/|\d+\/)([^\s]+)$/;
const PART = /^[\w.~][\w.~-]*$/;
const SHA = /^[0-9a-f]{40}$|^[0-9a-f]{64}$/;
const DIGITS = /^[1-9]\d{0,9}$/;

/** Returns the repository that the text links to; undefined if it is not a link to one. */
export const parseRepositoryAddress = (text: string): RepositoryAddress | undefined => {
  const trimmed = text.trim();
  if (trimmed.length > MAX_ADDRESS || /\s/.test(trimmed)) return undefined;
  const scp = SCP.exec(trimmed);
  if (scp) return toRepositoryAddress(`https://${(scp[1] ?? "").toLowerCase()}`, splitPath(scp[2] ?? ""), {});
  if (!URL.canParse(trimmed)) return undefined;
  const url = new URL(trimmed);
  const parts = splitPath(url.pathname);
  // A host that begins with a dash could be interpreted as a command-line option.
  if (parts === undefined || !HOST.test(url.hostname)) return undefined;
  // The SSH port says nothing about the web port.
  if (url.protocol === "ssh:" || url.protocol === "git:")
    return toRepositoryAddress(`https://${url.hostname}`, parts, {});
  if (url.protocol !== "https:" && url.protocol !== "http:") return undefined;
  return parseWebLink(url, parts);
};

/** The error for a link with a password or token, which would be stored and shown to others with access to the workspace. */
export const CREDENTIALS_PROBLEM =
  "must not hold a password or token: link your account at the host, or create a deploy key for the repository";

const TOKEN_NAME = /^(?:glpat-|gh[pousr]_|github_pat_|.{40})/;
const SECRET_MEMBERS = /^(?:.*[_-])?(?:token|password|passwd|secret|auth|api[_-]?key)$/i;

/** Returns whether the link contains a password or token. A username, which hosts put into their clone URLs, is not a secret. */
export const hasCredentials = (link: string): boolean => {
  const text = link.trim();
  if (!URL.canParse(text)) return false;
  const { username, password, searchParams } = new URL(text);
  if (password !== "" || TOKEN_NAME.test(username)) return true;
  return [...searchParams].some(([name, value]) => value !== "" && SECRET_MEMBERS.test(name));
};

type PageTarget = Pick<RepositoryAddress, "branch" | "commit" | "pull_request" | "path" | "branch_and_path">;

/** Returns the decoded parts of a path; undefined if the path has `.` or `..` parts or cannot be decoded. */
const splitPath = (path: string): string[] | undefined => {
  try {
    const parts = path.split("/").filter((part) => part !== "");
    const decoded = parts.map((part) => decodeURIComponent(part));
    // biome-ignore lint/suspicious/noControlCharactersInRegex: rejects control characters
    return decoded.some((part) => part === ".." || part === "." || /[\u0000-\u001f\\]/.test(part))
      ? undefined
      : decoded;
  } catch {
    return undefined;
  }
};

const parseWebLink = (url: URL, parts: readonly string[]): RepositoryAddress | undefined => {
  const { origin } = url;
  const bitbucket = parseBitbucketServer(url, parts);
  if (bitbucket) return bitbucket;
  // GitLab: a project's path has one part for each nested group, and ends at "-".
  const dash = parts.indexOf("-");
  if (dash >= 2) return toRepositoryAddress(origin, parts.slice(0, dash), parsePage(parts.slice(dash + 1), undefined));
  const [, , page] = parts;
  if (page !== undefined && !parts.some((part) => part.endsWith(".git"))) {
    const target = parsePage(parts.slice(2), url.hostname);
    // A known page without a code reference, such as an issue or a list, also belongs to a repository with a two-part path. Any other link
    // may be a GitLab project in nested groups.
    if (Object.keys(target).length > 0 || PAGES.has(page))
      return toRepositoryAddress(origin, parts.slice(0, 2), target);
  }
  return toRepositoryAddress(origin, parts, {});
};

/** Page names of hosts whose repositories have two-part paths. */
const PAGES = new Set([
  ...["actions", "activity", "blame", "blob", "branches", "commit", "commits", "compare", "discussions", "issues"],
  ...["labels", "milestones", "packages", "projects", "pull", "pull-requests", "pulls", "releases", "security"],
  ...["settings", "src", "tags", "tree", "wiki"],
]);

/** Returns what the page below a repository shows. */
const parsePage = (parts: readonly string[], host: string | undefined): PageTarget => {
  const [page = "", first = "", ...rest] = parts;
  switch (page) {
    case "tree":
      return parseRefAndPath([first, ...rest]);
    case "blob":
    case "blame":
      return parseRefAndPath([first, ...rest].slice(0, -1));
    case "commit":
    case "commits":
      if (SHA.test(first)) return { commit: first };
      return page === "commits" ? parseRefAndPath([first, ...rest]) : {};
    case "pull":
    case "pulls":
    case "pull-requests":
    case "merge_requests":
      return DIGITS.test(first) ? { pull_request: Number(first) } : {};
    case "branch":
      return first === "" ? {} : { branch: [first, ...rest].join("/") };
    case "src":
      return parseSourcePath(first, rest, host);
    default:
      return {};
  }
};

/** `src/branch/main/docs` is a Gitea link, `src/main/docs` a Bitbucket link. */
const parseSourcePath = (first: string, rest: readonly string[], host: string | undefined): PageTarget => {
  const isBitbucket = host === "bitbucket.org";
  if (!isBitbucket && (first === "branch" || first === "tag")) return parseRefAndPath(rest);
  if (!isBitbucket && first === "commit") return parseRefAndPath(rest);
  return parseRefAndPath([first, ...rest]);
};

/** A commit contains no slashes, but a branch can, so only the host can split a longer path. */
const parseRefAndPath = (parts: readonly string[]): PageTarget => {
  const [first = "", ...rest] = parts;
  if (first === "") return {};
  if (SHA.test(first)) return rest.length > 0 ? { commit: first, path: rest.join("/") } : { commit: first };
  return rest.length > 0 ? { branch_and_path: parts.join("/") } : { branch: first };
};

/** `/projects/KEY/repos/NAME/browse/docs?at=refs/heads/main`, cloned from `/scm/key/name.git`. */
const parseBitbucketServer = (
  { origin, searchParams }: URL,
  parts: readonly string[],
): RepositoryAddress | undefined => {
  const index = parts.indexOf("repos");
  const [kind, key] = [parts[index - 2], parts[index - 1]];
  const name = parts[index + 1];
  if (index < 2 || (kind !== "projects" && kind !== "users") || key === undefined || name === undefined)
    return undefined;
  const [page, first = "", ...rest] = parts.slice(index + 2);
  const branch = searchParams.get("at")?.replace(/^refs\/(?:heads|tags)\//, "");
  const path = page === "browse" ? [first, ...rest].filter(Boolean).join("/") : "";
  const target: PageTarget =
    page === "pull-requests" && DIGITS.test(first)
      ? { pull_request: Number(first) }
      : { ...(branch ? { branch } : {}), ...(path ? { path } : {}) };
  const owner = kind === "users" ? `~${key}` : key.toLowerCase();
  return toRepositoryAddress(origin, [...parts.slice(0, index - 2), "scm", owner, `${name}.git`], target);
};

const toRepositoryAddress = (
  origin: string,
  parts: readonly string[] | undefined,
  target: PageTarget,
): RepositoryAddress | undefined => {
  if (parts === undefined || parts.length < 1 || parts.length > 20 || !parts.every((part) => PART.test(part))) {
    return undefined;
  }
  const name = (parts.at(-1) ?? "").replace(/\.git$/, "");
  // The host of an ssh link may not be valid in a web address.
  if (name === "" || !URL.canParse(origin)) return undefined;
  return { url: `${new URL(origin).origin}/${parts.join("/")}`, name, ...target };
};

/** A git ref to try, and the folder that remains. */
export type CandidateRef = {
  readonly ref: string;
  readonly kind: "default" | "branch" | "tag" | "commit" | "pull_request";
  readonly path?: string;
};

/** Maximum number of path parts tried as a ref. */
const MAX_REF_PARTS = 6;

/** Returns the refs that the address may mean, most likely first. */
export const listCandidateRefs = (requested: PageTarget): CandidateRef[] => {
  const path = requested.path ? { path: requested.path } : {};
  const { branch, commit, pull_request, branch_and_path } = requested;
  if (commit !== undefined) return [{ ref: commit, kind: "commit", ...path }];
  if (pull_request !== undefined) {
    const refs = [`refs/pull/${pull_request}/head`, `refs/merge-requests/${pull_request}/head`];
    refs.push(`refs/pull-requests/${pull_request}/from`);
    return refs.map((ref) => ({ ref, kind: "pull_request", ...path }));
  }
  if (branch !== undefined) return toRefs(branch, requested.path);
  if (branch_and_path === undefined) return [{ ref: "HEAD", kind: "default", ...path }];
  const parts = branch_and_path.split("/");
  const counts = Array.from({ length: Math.min(parts.length, MAX_REF_PARTS) }, (_, i) => i + 1);
  return counts.flatMap((count) => toRefs(parts.slice(0, count).join("/"), parts.slice(count).join("/")));
};

const toRefs = (name: string, path: string | undefined): CandidateRef[] => {
  const folder = path ? { path } : {};
  return [
    { ref: `refs/heads/${name}`, kind: "branch", ...folder },
    { ref: `refs/tags/${name}`, kind: "tag", ...folder },
  ];
};

/** Derives a workspace name from a repository's name: letters, digits and single hyphens. */
export const toWorkspaceName = (name: string): string =>
  name
    .replace(/[^a-zA-Z0-9]+/g, "-")
    .replace(/^-+/, "")
    .slice(0, 28)
    .replace(/-+$/, "") || "workspace";
