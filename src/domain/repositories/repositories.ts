// Reads repositories with people's linked accounts and turns them into plans of workspaces (rules RW-10 to RW-14).

import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { FairSlots } from "#base/concurrency-limit.ts";
import { AppError, invalidField } from "#base/errors.ts";
import {
  CREDENTIALS_PROBLEM,
  hasCredentials,
  listCandidateRefs,
  parseRepositoryAddress,
  type RepositoryAddress,
} from "#base/links/repository-address.ts";
import type { Outbound } from "#base/outbound.ts";
import { trimEnd, trimEnds } from "#base/text/trim.ts";
import type { RepositoryAsked, RepositoryPlan } from "#schema/templates/repository.ts";
import { RepositoryError } from "#src/git/bounded-git.ts";
import { FeatureRegistry } from "#src/git/feature-registry.ts";
import { type Provider, toGitCredential } from "#src/git/provider.ts";
import { type DeployKeyAccess, type OpenRequest, RepositoryReader } from "#src/git/repository-reader.ts";
import { planRepository } from "#src/provisioners/repository/plan.ts";
import type { RepositorySource, RepositorySources } from "#src/provisioners/repository/sources.ts";
import type { Links } from "../external-auth/links.ts";

export type RepositoryDeps = {
  readonly clock: Clock;
  readonly outbound: Outbound;
  /** For owners of the deployment: allows this machine and private networks if only people on this machine use the server. */
  readonly ownersOutbound: Outbound;
  readonly isOwner: (user_id: string) => Promise<boolean>;
  readonly links: Links;
  /** Returns the deploy key of a user for the repository at a URL. */
  readonly deployKey: (user_id: string, url: string) => Promise<DeployKeyAccess | undefined>;
  /** The environment variables of the server process. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The folder for temporary clones. */
  readonly root: string;
};

/**
 * How many repositories are read at the same time, each by a git of its own with a clone: two for one user, so that a slow host does not
 * block everyone else. Further ones wait, because people open several repositories in a row.
 */
const READS = { total: 4, each: 2, waiting: 64, waiting_each: 16, wait_ms: 60_000 };

/** Limits in milliseconds and bytes for the build context of an image: one commit without history. */
const CONTEXT_TIMEOUT_MS = 10 * 60_000;
const MAX_CONTEXT = 1024 * 1024 * 1024;

/** The requested repository, and the field of the request that errors name. */
type Request = { readonly requested: RepositoryAsked; readonly field: string };

export class Repositories implements RepositorySources {
  readonly #deps: RepositoryDeps;
  readonly #ownerReaders: Readers;
  readonly #otherReaders: Readers;
  readonly #reads: FairSlots;

  constructor(deps: RepositoryDeps) {
    this.#deps = deps;
    this.#reads = new FairSlots(deps.clock, READS);
    this.#ownerReaders = makeReaders(deps, deps.ownersOutbound, join(deps.root, "owners"));
    this.#otherReaders = makeReaders(deps, deps.outbound, join(deps.root, "others"));
  }

  /** Returns the provider whose account reads repositories at this URL, if there is one. */
  providerFor(url: string): Provider | undefined {
    return this.#deps.links.providerFor(url);
  }

  /** Returns the plan for a request. Throws 400 by the invalid field, and 503 if it would wait too long for others. */
  async plan(user_id: string, { requested, field }: Request): Promise<RepositoryPlan> {
    const address = toAddress(requested, field);
    const release = await this.#reads.take(user_id);
    if (!release) throw new AppError("overloaded", "Too many repositories are being read. Try again in a moment.");
    try {
      return await this.#read(user_id, address, { requested, field });
    } catch (error) {
      if (!(error instanceof RepositoryError)) throw error;
      throw new AppError("invalid", error.message, { validations: [{ field, detail: error.message }], cause: error });
    } finally {
      release();
    }
  }

  async #read(user_id: string, address: RepositoryAddress, { requested, field }: Request): Promise<RepositoryPlan> {
    const access = await this.#loadAccess(user_id, address.url);
    const readers = await this.#chooseReaders(user_id);
    using repository = await readers.plans.open({ url: address.url, refs: listCandidateRefs(address), ...access });
    const path = trimEnd(repository.ref.path ?? "", "/") || undefined;
    if (path !== undefined && !repository.files.some((file) => file.startsWith(`${path}/`))) {
      throw invalidField(field, `the repository has no folder ${path}`);
    }
    const location = {
      url: repository.url,
      ...(access.deploy_key ? { ssh_url: access.deploy_key.ssh_url } : {}),
      name: address.name,
      ref: repository.ref.ref,
      ref_kind: repository.ref.kind,
      ...(path === undefined ? {} : { path }),
      ...(requested.full_history ? { full_history: true } : {}),
    };
    // Its files exist only while the repository is open.
    return await planRepository(repository, location, requested.configuration);
  }

  /** Returns the files of a plan's commit for an image. Rejects with RepositoryError, or the signal's reason. */
  async open({ url, commit }: RepositoryPlan, owner_id: string, signal: AbortSignal): Promise<RepositorySource> {
    const access = await this.#loadAccess(owner_id, url);
    const { images } = await this.#chooseReaders(owner_id);
    return await images.open({ url, refs: [{ ref: commit, kind: "commit" }], ...access, signal, isWhole: true });
  }

  /** Returns the tar of a feature. */
  async loadFeature(id: string, owner_id: string, signal: AbortSignal): Promise<Uint8Array> {
    return (await this.#chooseReaders(owner_id)).features.fetch(id, signal);
  }

  /** Returns the token with which an engine pulls an image. */
  async fetchPullToken(image: string, owner_id: string, signal: AbortSignal): Promise<string | undefined> {
    return (await this.#chooseReaders(owner_id)).features.fetchPullToken(image, signal);
  }

  async #chooseReaders(user_id: string): Promise<Readers> {
    return (await this.#deps.isOwner(user_id)) ? this.#ownerReaders : this.#otherReaders;
  }

  /** A deploy key for this repository takes precedence over an account. */
  async #loadAccess(user_id: string, url: string): Promise<Pick<OpenRequest, "credential" | "deploy_key">> {
    const deploy_key = await this.#deps.deployKey(user_id, url);
    if (deploy_key) return { deploy_key };
    const provider = this.providerFor(url);
    const link = provider && (await this.#deps.links.getLiveToken(user_id, provider));
    return { credential: link && toGitCredential(provider.type, link.access_token) };
  }
}

/** Readers for people with the same network access. */
type Readers = {
  readonly plans: RepositoryReader;
  readonly images: RepositoryReader;
  readonly features: FeatureRegistry;
};

const makeReaders = ({ clock, env }: RepositoryDeps, outbound: Outbound, root: string): Readers => ({
  plans: new RepositoryReader({ outbound, clock, env, root: join(root, "read") }),
  images: new RepositoryReader({
    outbound,
    clock,
    env,
    root: join(root, "images"),
    timeout_ms: CONTEXT_TIMEOUT_MS,
    max_bytes: MAX_CONTEXT,
  }),
  features: new FeatureRegistry(outbound),
});

/** Returns the reference of the link; explicit fields of the request take precedence. */
const toAddress = (requested: RepositoryAsked, field: string): RepositoryAddress => {
  if (hasCredentials(requested.url)) throw invalidField(`${field}.url`, CREDENTIALS_PROBLEM);
  const linked = parseRepositoryAddress(requested.url);
  if (!linked) {
    throw invalidField(`${field}.url`, "is not a link to a Git repository, such as https://github.com/acme/app");
  }
  const references = [requested.branch, requested.commit, requested.pull_request].filter(
    (one) => one !== undefined && one !== "",
  );
  if (references.length > 1) throw invalidField(field, "takes one of branch, commit and pull_request");
  for (const name of ["branch", "path"] as const) {
    const problem = requested[name] === undefined ? undefined : findProblem(name, requested[name]);
    if (problem !== undefined) throw invalidField(`${field}.${name}`, problem);
  }
  const { url, name } = linked;
  const path = trimEnds(requested.path ?? "", "/") || undefined;
  const reference =
    references.length > 0
      ? { branch: requested.branch || undefined, commit: requested.commit, pull_request: requested.pull_request }
      : linked;
  const linkedFields = reference === linked ? { path: linked.path, branch_and_path: linked.branch_and_path } : {};
  const fields = {
    branch: reference.branch,
    commit: reference.commit,
    pull_request: reference.pull_request,
    ...linkedFields,
    ...(path ? { path } : {}),
  };
  return { url, name, ...Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) };
};

/** Git's rules for ref names and paths. */
const findProblem = (what: "branch" | "path", text: string): string | undefined => {
  if (text.split("/").includes("..") || text.includes("\\")) return "must not leave the repository";
  if (what === "path") return undefined;
  const isName = !/[\s~^:?*[]|\.\.|@\{|^[-/.]|\/$|\.lock$|\/\/|\/\./.test(text);
  return text === "" || isName ? undefined : "is not the name of a branch";
};
