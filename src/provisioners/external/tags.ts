// Decides by tags which worker may take a job. A worker must match all tags of the job. Reserved tags name the organization, the
// provisioner and the place, such as a machine. Once a workspace exists, only workers in its place can reach its resources. Pure.
import type { Manifest } from "#schema/templates/manifest.ts";
import { findPlace } from "./workspace-record.ts";

export type Tags = Readonly<Record<string, string>>;

/** Tags that every worker has, regardless of its settings. */
const WORKER_TAGS: Tags = { scope: "organization", owner: "" };

/** The properties of a worker that decide which jobs it may take. */
export type WorkerScope = {
  readonly organization_id: string;
  readonly provisioners: readonly string[];
  readonly tags: Tags;
  /** The place of the worker's workspaces by provisioner. */
  readonly places: Tags;
};

/** Returns true if the server itself runs jobs with these tags. */
export const isForBuiltIn = (tags: Tags = {}): boolean =>
  Object.entries(tags).every(([name, value]) => WORKER_TAGS[name] === value);

/**
 * Returns the tags of a build's job: the template's tags, and the organization and provisioner if a worker runs it. The server itself runs
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
 * Returns the tags of a Terraform template's import. Like a build, the import needs a worker if it has tags or `terraform_workers` is set,
 * because it runs the template's code.
 */
export const importTags = (tags: Tags, organization_id: string, terraform_workers: boolean): Record<string, string> => {
  const needsWorker = terraform_workers || Object.keys(getRequestedTags(tags)).length > 0;
  return { ...tags, ...(needsWorker ? { provisioner: "terraform", organization: organization_id } : {}) };
};

/** Returns only the tags that a person has requested, without the tags that the server adds to jobs. */
export const getRequestedTags = ({
  provisioner: _,
  organization: _own,
  place: _place,
  ...tags
}: Tags): Record<string, string> =>
  Object.fromEntries(Object.entries(tags).filter(([name, value]) => WORKER_TAGS[name] !== value));

/** Adds the place from the state of the previous build, so that a worker that can reach the workspace's resources takes the job. */
export const addPlaceTag = (tags: Tags, previousState: string | null): Record<string, string> => {
  const place = tags.provisioner === undefined ? undefined : findPlace(previousState);
  return place === undefined ? { ...tags } : { ...tags, place };
};

/**
 * Adds the place of the worker that has started a Terraform job. No other worker may continue the job, because only that worker's folder
 * contains the state until the build has ended.
 */
export const bindTagsToWorker = (tags: Tags, places: Tags | undefined): Tags => {
  const place = tags.provisioner === "terraform" ? places?.terraform : undefined;
  return place === undefined || tags.place !== undefined ? tags : { ...tags, place };
};

/**
 * Returns the tags of a workspace's next Terraform build if the result of this build was never reported. The next build needs the same
 * worker, which has the state in its folder. Any other worker would create all resources again.
 */
export const toUnreportedBuildTags = ({ provisioner, organization, place }: Tags): Record<string, string> =>
  provisioner === "terraform" && organization !== undefined && place !== undefined
    ? { provisioner, organization, place }
    : {};

/** Removes the place of a Terraform job once its result is known, or an administrator has decided not to wait for the result. */
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
