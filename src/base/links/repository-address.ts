// What a pasted link to a repository means: where to clone it from, and which branch, commit, pull request or folder the page showed. Pure;
// reads links of GitHub, GitLab, Gitea and Bitbucket by their shape, so that hosts of one's own are read, too.

export type RepositoryAddress = {
  /** What git clones: http or https, without a user. */
  readonly url: string;
  /** The last part of the path, for people and as the folder's name. */
  readonly name: string;
  readonly branch?: string;
  readonly commit?: string;
  readonly pull_request?: number;
  /** A folder in the repository. */
  readonly path?: string;
  /** A branch and perhaps a folder, which only the host can tell apart: `feature/x/docs`. Instead of `branch` and `path`. */
  readonly branch_and_path?: string;
};

/** Characters of a link that are read. */
export const MAX_ADDRESS = 2_048;

const HOST = /^[\w[]/;
const SCP = /^(?:[\w.-]+@)?(\w[\w-]*(?:\.[\w-]+)+):(?!\/\/|\d+\/)([^\s]+)$/;
const PART = /^[\w.~][\w.~-]*$/;
const SHA = /^[0-9a-f]{40}$|^[0-9a-f]{64}$/;
const DIGITS = /^[1-9]\d{0,9}$/;

/** The repository that the text is a link to; undefined when it is none. */
export const parseRepositoryAddress = (text: string): RepositoryAddress | undefined => {
  const trimmed = text.trim();
  if (trimmed.length > MAX_ADDRESS || /\s/.test(trimmed)) return undefined;
  const scp = SCP.exec(trimmed);
  if (scp) return repository(`https://${(scp[1] ?? "").toLowerCase()}`, partsOf(scp[2] ?? ""), {});
  if (!URL.canParse(trimmed)) return undefined;
  const url = new URL(trimmed);
  const parts = partsOf(url.pathname);
  // A host that begins with a dash would be an option of a program.
  if (parts === undefined || !HOST.test(url.hostname)) return undefined;
  // The port of ssh says nothing of the web.
  if (url.protocol === "ssh:" || url.protocol === "git:") return repository(`https://${url.hostname}`, parts, {});
  if (url.protocol !== "https:" && url.protocol !== "http:") return undefined;
  return linkOn(url, parts);
};

/** What a link with a password or token is answered with: it would be stored, and shown to others who may see the workspace. */
export const NO_CREDENTIALS =
  "must not hold a password or token: link your account at the host, or create a deploy key for the repository";

const TOKEN_NAME = /^(?:glpat-|gh[pousr]_|github_pat_|.{40})/;
const SECRET_MEMBERS = /^(?:.*[_-])?(?:token|password|passwd|secret|auth|api[_-]?key)$/i;

/** Whether the link has a password or token in it. The name of a user, as hosts copy it into links, is no secret. */
export const holdsCredentials = (link: string): boolean => {
  const text = link.trim();
  if (!URL.canParse(text)) return false;
  const { username, password, searchParams } = new URL(text);
  if (password !== "" || TOKEN_NAME.test(username)) return true;
  return [...searchParams].some(([name, value]) => value !== "" && SECRET_MEMBERS.test(name));
};

type Shown = Pick<RepositoryAddress, "branch" | "commit" | "pull_request" | "path" | "branch_and_path">;

/** The parts of a path, decoded; undefined for a path that leaves itself or cannot be read. */
const partsOf = (path: string): string[] | undefined => {
  try {
    const parts = path.split("/").filter((part) => part !== "");
    const decoded = parts.map((part) => decodeURIComponent(part));
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
    return decoded.some((part) => part === ".." || part === "." || /[\u0000-\u001f\\]/.test(part))
      ? undefined
      : decoded;
  } catch {
    return undefined;
  }
};

const linkOn = (url: URL, parts: readonly string[]): RepositoryAddress | undefined => {
  const { origin } = url;
  const server = bitbucketServer(url, parts);
  if (server) return server;
  // GitLab: the project's path is as long as its groups are deep, and ends at "-".
  const dash = parts.indexOf("-");
  if (dash >= 2) return repository(origin, parts.slice(0, dash), shownBy(parts.slice(dash + 1), undefined));
  const [, , page] = parts;
  if (page !== undefined && !parts.some((part) => part.endsWith(".git"))) {
    const shown = shownBy(parts.slice(2), url.hostname);
    // A page of two parts and more that says nothing of code: an issue, a list. Or GitLab's deeper groups.
    if (Object.keys(shown).length > 0 || PAGES.has(page)) return repository(origin, parts.slice(0, 2), shown);
  }
  return repository(origin, parts, {});
};

/** Pages of a repository on hosts whose repositories have two parts. */
const PAGES = new Set([
  ...["actions", "activity", "blame", "blob", "branches", "commit", "commits", "compare", "discussions", "issues"],
  ...["labels", "milestones", "packages", "projects", "pull", "pull-requests", "pulls", "releases", "security"],
  ...["settings", "src", "tags", "tree", "wiki"],
]);

/** What the page below a repository shows. */
const shownBy = (parts: readonly string[], host: string | undefined): Shown => {
  const [page = "", first = "", ...rest] = parts;
  switch (page) {
    case "tree":
      return refAndPath([first, ...rest]);
    case "blob":
    case "blame":
      return refAndPath([first, ...rest].slice(0, -1));
    case "commit":
    case "commits":
      if (SHA.test(first)) return { commit: first };
      return page === "commits" ? refAndPath([first, ...rest]) : {};
    case "pull":
    case "pulls":
    case "pull-requests":
    case "merge_requests":
      return DIGITS.test(first) ? { pull_request: Number(first) } : {};
    case "branch":
      return first === "" ? {} : { branch: [first, ...rest].join("/") };
    case "src":
      return giteaOrBitbucket(first, rest, host);
    default:
      return {};
  }
};

/** `src/branch/main/docs` is Gitea's, `src/main/docs` Bitbucket's. */
const giteaOrBitbucket = (first: string, rest: readonly string[], host: string | undefined): Shown => {
  const isBitbucket = host === "bitbucket.org";
  if (!isBitbucket && (first === "branch" || first === "tag")) return refAndPath(rest);
  if (!isBitbucket && first === "commit") return refAndPath(rest);
  return refAndPath([first, ...rest]);
};

/** A commit has no slashes; a branch may, so where more follows only the host can tell. */
const refAndPath = (parts: readonly string[]): Shown => {
  const [first = "", ...rest] = parts;
  if (first === "") return {};
  if (SHA.test(first)) return rest.length > 0 ? { commit: first, path: rest.join("/") } : { commit: first };
  return rest.length > 0 ? { branch_and_path: parts.join("/") } : { branch: first };
};

/** `/projects/KEY/repos/NAME/browse/docs?at=refs/heads/main`, cloned from `/scm/key/name.git`. */
const bitbucketServer = ({ origin, searchParams }: URL, parts: readonly string[]): RepositoryAddress | undefined => {
  const at = parts.indexOf("repos");
  const [kind, key] = [parts[at - 2], parts[at - 1]];
  const name = parts[at + 1];
  if (at < 2 || (kind !== "projects" && kind !== "users") || key === undefined || name === undefined) return undefined;
  const [page, first = "", ...rest] = parts.slice(at + 2);
  const branch = searchParams.get("at")?.replace(/^refs\/(?:heads|tags)\//, "");
  const path = page === "browse" ? [first, ...rest].filter(Boolean).join("/") : "";
  const shown: Shown =
    page === "pull-requests" && DIGITS.test(first)
      ? { pull_request: Number(first) }
      : { ...(branch ? { branch } : {}), ...(path ? { path } : {}) };
  const owner = kind === "users" ? `~${key}` : key.toLowerCase();
  return repository(origin, [...parts.slice(0, at - 2), "scm", owner, `${name}.git`], shown);
};

const repository = (
  origin: string,
  parts: readonly string[] | undefined,
  shown: Shown,
): RepositoryAddress | undefined => {
  if (parts === undefined || parts.length < 1 || parts.length > 20 || !parts.every((part) => PART.test(part))) {
    return undefined;
  }
  const name = (parts.at(-1) ?? "").replace(/\.git$/, "");
  if (name === "") return undefined;
  return { url: `${origin}/${parts.join("/")}`, name, ...shown };
};

/** What git is asked for, in the order in which it is tried: a reference of the host, and the folder that is left then. */
export type RefToTry = {
  readonly ref: string;
  readonly kind: "default" | "branch" | "tag" | "commit" | "pull_request";
  readonly path?: string;
};

/** At most so many slashes of a name are looked for. */
const MAX_REF_PARTS = 6;

/** The references that the address may mean, the likeliest first. */
export const refsToTry = (asked: Shown): RefToTry[] => {
  const path = asked.path ? { path: asked.path } : {};
  const { branch, commit, pull_request, branch_and_path } = asked;
  if (commit !== undefined) return [{ ref: commit, kind: "commit", ...path }];
  if (pull_request !== undefined) {
    const refs = [`refs/pull/${pull_request}/head`, `refs/merge-requests/${pull_request}/head`];
    refs.push(`refs/pull-requests/${pull_request}/from`);
    return refs.map((ref) => ({ ref, kind: "pull_request", ...path }));
  }
  if (branch !== undefined) return named(branch, asked.path);
  if (branch_and_path === undefined) return [{ ref: "HEAD", kind: "default", ...path }];
  const parts = branch_and_path.split("/");
  const counts = Array.from({ length: Math.min(parts.length, MAX_REF_PARTS) }, (_, at) => at + 1);
  return counts.flatMap((count) => named(parts.slice(0, count).join("/"), parts.slice(count).join("/")));
};

const named = (name: string, path: string | undefined): RefToTry[] => {
  const more = path ? { path } : {};
  return [
    { ref: `refs/heads/${name}`, kind: "branch", ...more },
    { ref: `refs/tags/${name}`, kind: "tag", ...more },
  ];
};

/** A workspace's name from a repository's: letters and digits in groups joined by single hyphens. */
export const workspaceNameFor = (name: string): string =>
  name
    .replace(/[^a-zA-Z0-9]+/g, "-")
    .replace(/^-+/, "")
    .slice(0, 28)
    .replace(/-+$/, "") || "workspace";
