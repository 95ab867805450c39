// Tags: which worker may take which job. A job asks for all of its tags; the reserved ones name the organization, the provisioner
// and, once a workspace lives somewhere, the place. Pure.
import type { Manifest } from "#schema/templates/manifest.ts";
import { findPlace } from "./place.ts";

export type Tags = Readonly<Record<string, string>>;

/** What every worker has, whatever it is told. */
const WORKER_TAGS: Tags = { scope: "organization", owner: "" };

/** What is known of a worker for choosing one. */
export type WorkerPlace = {
  readonly organization_id: string;
  readonly provisioners: readonly string[];
  readonly tags: Tags;
  /** Where what it brings to life lives, by provisioner: another worker there can continue with it. */
  readonly places: Tags;
};

/**
 * The tags of a build's job: those of the template, and for one that a worker brings to life which worker it needs. Templates of Terraform
 * are run by the server itself unless they ask for tags, or `terraform_workers` is set.
 */
export const buildTags = (
  manifest: Manifest,
  organization_id: string,
  { terraform_workers = false }: { readonly terraform_workers?: boolean } = {},
): Record<string, string> => {
  const { provisioner, external, terraform } = manifest;
  const tags = { ...terraform?.workspace_tags, ...manifest.tags };
  const needsWorker = terraform_workers || Object.keys(tags).some((name) => !(name in WORKER_TAGS));
  const kind = provisioner === "external" ? (external?.provisioner ?? "") : provisioner;
  const isAway = provisioner === "external" || (provisioner === "terraform" && needsWorker);
  return { ...tags, ...(isAway ? { provisioner: kind, organization: organization_id } : {}) };
};

/**
 * The tags of an import of a template of Terraform, which runs the template's code as a build does: with tags of its own, or where workers
 * do every build, it needs a worker, too.
 */
export const importTags = (asked: Tags, organization_id: string, isForWorkers: boolean): Record<string, string> => {
  const needsWorker = isForWorkers || Object.keys(wishesIn(asked)).length > 0;
  return { ...asked, ...(needsWorker ? { provisioner: "terraform", organization: organization_id } : {}) };
};

/** What someone has asked for, without what every job says. */
export const wishesIn = ({
  provisioner: _,
  organization: _own,
  place: _place,
  ...tags
}: Tags): Record<string, string> => Object.fromEntries(Object.entries(tags).filter(([name]) => !(name in WORKER_TAGS)));

/** The same once it is known what the build before has left: its workspace stays where it is. */
export const tagsWithPlace = (tags: Tags, left: string | null): Record<string, string> => {
  const place = tags.provisioner === undefined ? undefined : findPlace(left);
  return place === undefined ? { ...tags } : { ...tags, place };
};

/**
 * The same once a worker has begun: what Terraform has made so far is known in that worker's folder alone until the build has ended, so
 * that nobody else may take the build up.
 */
export const tagsWhileRunning = (tags: Tags, places: Tags | undefined): Tags => {
  const place = tags.provisioner === "terraform" ? places?.terraform : undefined;
  return place === undefined || tags.place !== undefined ? tags : { ...tags, place };
};

/**
 * What the next build of a workspace needs when nobody has heard what this one of Terraform's has left: the worker whose folder knows it. Any
 * other would make everything a second time.
 */
export const tagsUnheard = ({ provisioner, organization, place }: Tags): Record<string, string> =>
  provisioner === "terraform" && organization !== undefined && place !== undefined
    ? { provisioner, organization, place }
    : {};

/** The same once it is known what the build has left, or someone has decided to do without. */
export const tagsHeard = (tags: Tags): Tags => {
  if (tags.provisioner !== "terraform") return tags;
  const { place: _, ...heard } = tags;
  return heard;
};

/** Whether the worker may take a job with these tags. Jobs that need no worker of their own are never its affair. */
export const mayTake = (worker: WorkerPlace, tags: Tags): boolean => {
  const { provisioner, organization, place, ...others } = tags;
  return (
    provisioner !== undefined &&
    worker.provisioners.includes(provisioner) &&
    organization === worker.organization_id &&
    (place === undefined || worker.places[provisioner] === place) &&
    Object.entries(others).every(([key, value]) => (worker.tags[key] ?? WORKER_TAGS[key]) === value)
  );
};

/** What a job asks for, in words for people. */
export const tagsInWords = ({ organization: _, place, ...tags }: Tags): string => {
  const asked = Object.entries(tags).map(([key, value]) => `${key}=${value}`);
  return `${asked.join(", ")}${place === undefined ? "" : " where the workspace lives"}`;
};

/** `a=1,b=2` -> {a: "1", b: "2"}; undefined when it is not that. */
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
