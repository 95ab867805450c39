// Tags that decide which worker may take a job. A worker must match all tags of the job. Reserved tags name the organization, the
// provisioner and, once a workspace exists, its place. Pure.
import type { Manifest } from "#schema/templates/manifest.ts";
import { findPlace } from "./workspace-record.ts";

export type Tags = Readonly<Record<string, string>>;

/** Tags that every worker has, regardless of its settings. */
const WORKER_TAGS: Tags = { scope: "organization", owner: "" };

/** A worker's properties that matter for choosing it. */
export type WorkerScope = {
  readonly organization_id: string;
  readonly provisioners: readonly string[];
  readonly tags: Tags;
  /** The place of its workspaces by provisioner: another worker in the same place can continue with them. */
  readonly places: Tags;
};

/** Returns whether the server itself runs jobs with these tags. */
export const isForBuiltIn = (tags: Tags = {}): boolean =>
  Object.entries(tags).every(([name, value]) => WORKER_TAGS[name] === value);

/**
 * Returns the tags of a build's job: the template's tags, and the required kind of worker if a worker runs it. The server itself runs
 * Terraform templates unless they have tags or `terraform_workers` is set.
 */
export const buildTags = (
  manifest: Manifest,
  organization_id: string,
  { terraform_workers = false }: { readonly terraform_workers?: boolean } = {},
): Record<string, string> => {
  const { provisioner, external, terraform } = manifest;
  const tags = { ...terraform?.workspace_tags, ...manifest.tags };
  const needsWorker = terraform_workers || !isForBuiltIn(tags);
  const kind = provisioner === "external" ? (external?.provisioner ?? "") : provisioner;
  const runsOnWorker = provisioner === "external" || (provisioner === "terraform" && needsWorker);
  return { ...tags, ...(runsOnWorker ? { provisioner: kind, organization: organization_id } : {}) };
};

/**
 * Returns the tags of a Terraform template's import, which runs the template's code like a build. It also needs a worker if the template
 * has tags or if workers do all builds.
 */
export const importTags = (request: Tags, organization_id: string, isForWorkers: boolean): Record<string, string> => {
  const needsWorker = isForWorkers || Object.keys(getRequestedTags(request)).length > 0;
  return { ...request, ...(needsWorker ? { provisioner: "terraform", organization: organization_id } : {}) };
};

/** Returns only the tags that a person has requested, without the ones that every job has. */
export const getRequestedTags = ({
  provisioner: _,
  organization: _own,
  place: _place,
  ...tags
}: Tags): Record<string, string> =>
  Object.fromEntries(Object.entries(tags).filter(([name, value]) => WORKER_TAGS[name] !== value));

/** Adds the place from the state of the previous build, so that the workspace stays where it is. */
export const addPlaceTag = (tags: Tags, previousState: string | null): Record<string, string> => {
  const place = tags.provisioner === undefined ? undefined : findPlace(previousState);
  return place === undefined ? { ...tags } : { ...tags, place };
};

/**
 * Binds the job to a worker that has started it: until the build has ended, only that worker's folder records what Terraform has created,
 * so no other worker may take over.
 */
export const bindTagsToWorker = (tags: Tags, places: Tags | undefined): Tags => {
  const place = tags.provisioner === "terraform" ? places?.terraform : undefined;
  return place === undefined || tags.place !== undefined ? tags : { ...tags, place };
};

/**
 * Returns the tags of a workspace's next Terraform build if the result of this one was never reported: it needs the worker whose folder has
 * the state, because any other worker would create all resources again.
 */
export const toUnreportedBuildTags = ({ provisioner, organization, place }: Tags): Record<string, string> =>
  provisioner === "terraform" && organization !== undefined && place !== undefined
    ? { provisioner, organization, place }
    : {};

/** Removes the binding to a worker once the result is known, or an administrator has decided not to wait for it. */
export const unbindTagsFromWorker = (tags: Tags): Tags => {
  if (tags.provisioner !== "terraform") return tags;
  const { place: _, ...others } = tags;
  return others;
};

/** Returns true if the worker may take a job with these tags. Always false for jobs that need no external worker. */
export const canRun = (worker: WorkerScope, tags: Tags): boolean => {
  const { provisioner, organization, place, ...others } = tags;
  return (
    provisioner !== undefined &&
    worker.provisioners.includes(provisioner) &&
    organization === worker.organization_id &&
    (place === undefined || worker.places[provisioner] === place) &&
    Object.entries(others).every(([key, value]) => (worker.tags[key] ?? WORKER_TAGS[key]) === value)
  );
};

/** Describes a job's requested tags for people. */
export const describeTags = ({ organization: _, place, ...tags }: Tags): string => {
  const requested = Object.entries(tags).map(([key, value]) => `${key}=${value}`);
  return `${requested.join(", ")}${place === undefined ? "" : " where the workspace lives"}`;
};

/** Parses `a=1,b=2` to {a: "1", b: "2"}; undefined if invalid. */
export const parseTags = (text: string): Record<string, string> | undefined => {
  const parts = text.split(",").filter((part) => part.trim() !== "");
  const pairs = parts.map((part) => /^\s*([^=\s]{1,64})\s*=(.{0,256})$/s.exec(part));
  if (pairs.length > 64 || pairs.some((pair) => pair === null)) return undefined;
  return Object.fromEntries(pairs.map((pair) => [pair?.[1] ?? "", (pair?.[2] ?? "").trim()]));
};

export const printTags = (tags: Tags): string =>
  Object.entries(tags)
    .map(([key, value]) => `${key}=${value}`)
    .join(",");
