// A user's dotfiles, which their workspaces install before their start scripts (rules DF-1 to DF-3).
import { invalidField } from "#base/errors.ts";
import { updateUser } from "#db/users/users.ts";
import type { Dotfiles, UpdateDotfiles } from "#schema/users/dotfiles.ts";
import type { DomainContext } from "../context.ts";
import { auditUserChanged } from "./audit.ts";
import type { KnownUser } from "./find.ts";

type Deps = Pick<DomainContext, "store" | "clock">;

export const toDotfiles = (user: KnownUser): Dotfiles => ({
  url: user.dotfiles_url,
  branch: user.dotfiles_branch,
  install_command: user.dotfiles_install_command,
});

/** Throws 400 for a URL that git would not clone. Takes effect when a workspace next starts. */
export const setDotfiles = async (
  deps: Deps,
  user: KnownUser,
  { url, branch = "", install_command = "" }: UpdateDotfiles,
): Promise<Dotfiles> => {
  const dotfiles = { url: url.trim(), branch: branch.trim(), install_command: install_command.trim() };
  const problem = findUrlProblem(dotfiles.url);
  if (problem !== undefined) throw invalidField("url", problem);
  if (/^-|\s/.test(dotfiles.branch)) throw invalidField("branch", "is not a valid branch name");
  await writeDotfiles(deps, user, dotfiles);
  return dotfiles;
};

/** Files that were already installed in workspaces are kept. */
export const removeDotfiles = (deps: Deps, user: KnownUser): Promise<void> =>
  writeDotfiles(deps, user, { url: "", branch: "", install_command: "" });

const writeDotfiles = async ({ store, clock }: Deps, user: KnownUser, dotfiles: Dotfiles): Promise<void> => {
  const patch = {
    dotfiles_url: dotfiles.url,
    dotfiles_branch: dotfiles.branch,
    dotfiles_install_command: dotfiles.install_command,
  };
  if (Object.entries(patch).every(([name, value]) => user[name as keyof typeof patch] === value)) return;
  const now = clock.now();
  await store.commit([
    updateUser(user.id, { ...patch, updated_at: now }, { expect: 1 }),
    auditUserChanged(user, patch, now),
  ]);
};

const SCP = /^(?:\w[\w.-]*@)?\w[\w.-]*:(?!\/\/)[^\s-]\S*$/;
const SCHEMES = new Set(["http:", "https:", "ssh:"]);

const findUrlProblem = (url: string): string | undefined => {
  if (SCP.test(url)) return undefined;
  if (/\s/.test(url) || !URL.canParse(url) || !SCHEMES.has(new URL(url).protocol)) {
    return "must be the address of a Git repository, such as https://github.com/ada/dotfiles or git@github.com:ada/dotfiles";
  }
  const { password, username, protocol, hostname, pathname, search } = new URL(url);
  // The URL is stored and shown unchanged. An SSH username is not a secret.
  if (password !== "" || search !== "" || (username !== "" && protocol !== "ssh:")) {
    return "must not contain a password or token; link your account at the host instead";
  }
  // The host of an ssh URL may be one that no other URL has.
  const isHost = /^[\w[]/.test(hostname) && URL.canParse(`https://${hostname}`);
  if (!isHost || username.startsWith("-") || pathname.length < 2) return "must name a host and a repository";
  return undefined;
};
