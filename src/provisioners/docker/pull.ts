// Finds and pulls images. Reports the progress of a pull in the build log: each status of a layer once, and the total every few seconds.

import type { Clock } from "#base/clock.ts";
import { formatSize } from "#base/format-size.ts";
import { parseJson } from "#base/json/read.ts";
import { log } from "#base/log.ts";
import { ProvisionError, type Report } from "../provisioner.ts";
import { type Engine, EngineError } from "./engine.ts";
import { checkImageLabels } from "./image-name.ts";
import { formatPlatform, isForPlatform, type Platform } from "./platform.ts";

type Progress = {
  readonly id?: string;
  readonly status?: string;
  readonly error?: string;
  readonly progressDetail?: { readonly current?: number; readonly total?: number };
};

/** Milliseconds between two progress lines. */
const PROGRESS_INTERVAL_MS = 3_000;
/** Milliseconds without progress after which a pull is aborted. Also the timeout for fetching a token from the registry. */
export const PULL_IDLE_TIMEOUT_MS = 5 * 60_000;
/** Statuses that the engine repeats while it transfers bytes. */
const PROGRESS_STATES = new Set(["Downloading", "Extracting", "Waiting", "Pulling fs layer", "Verifying Checksum"]);

export type Pull = {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly report: Report;
  readonly stage: string;
  readonly signal: AbortSignal;
  /** Returns the token for pulling an image; undefined if the engine can sign in without one. */
  readonly fetchToken?: (image: string) => Promise<string | undefined>;
};

export type Image = {
  readonly id: string;
  readonly architecture: string;
  /** The user that the image intends, in its configuration or in a development image's label; empty for root or unknown. */
  readonly user: string;
  /** The user in the image's configuration; empty for root. */
  readonly config_user: string;
  /** The image's ONBUILD instructions. */
  readonly triggers: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  /** Milliseconds since 1970. */
  readonly created_at: number;
  /** The image's names in registries that it was pulled from or pushed to. */
  readonly digests: readonly string[];
};

/**
 * Returns the engine's image for the platform, by default for any platform. Pulls the image first if the policy requires it. Throws
 * ProvisionError if the image is not available, or if it has labels that only the server may set.
 */
export const ensureImage = async (
  pull: Pull,
  image: string,
  policy: "missing" | "always" | "never",
  platform?: Platform,
): Promise<Image> => {
  const existing = policy === "always" ? undefined : await findImage(pull, image, platform);
  if (existing) return checkLabels(image, existing);
  if (policy === "never")
    throw new ProvisionError(`The image ${image} does not exist on the Docker Engine, and its pull policy is never.`);
  const token = await pull.fetchToken?.(image);
  const headers = token === undefined ? {} : toAuthHeader({ registrytoken: token });
  try {
    await fetchImage(pull, image, headers, platform);
  } catch (error) {
    if (!(error instanceof EngineError) || (token === undefined && !quotesAnswer(error.message))) throw error;
    log("docker").warn("the image {image} cannot be fetched: {error}", { image, error });
    throw new ProvisionError(`The image ${image} cannot be fetched: ${findPullReason(error.message)}.`);
  }
  const fetched = await findImage(pull, image, platform);
  if (fetched) return checkLabels(image, fetched);
  if (platform) throw new ProvisionError(`The image ${image} has no variant for ${formatPlatform(platform)}.`);
  throw new ProvisionError(`The image ${image} was fetched, but the Docker Engine does not have it.`);
};

/** Returns the header with credentials for a registry. The engine's decoder requires the padding that `base64url` omits. */
export const toAuthHeader = (credentials: object): Readonly<Record<string, string>> => {
  const text = Buffer.from(JSON.stringify(credentials)).toString("base64");
  return { "x-registry-auth": text.replaceAll("+", "-").replaceAll("/", "_") };
};

/** Returns true if an engine's message quotes an answer of a registry, or of a server to which the registry redirects. */
export const quotesAnswer = (message: string): boolean =>
  /error parsing HTTP|unexpected (?:HTTP )?status|decode token response/i.test(message);

const PULL_REASONS: readonly [RegExp, string][] = [
  [/no space left on device/, "the Docker Engine has no space left"],
  [/no matching manifest/, "it has no variant for the platform of the Docker Engine"],
  [/manifest (?:for .*)?(?:unknown|not found)/, "its registry does not have it"],
  [/toomanyrequests|status(?: code)?:? 429/i, "its registry limits how often images are fetched. Try again later"],
  [/unauthorized|denied|authentication required/i, "its registry does not have it, or requires sign-in"],
  [/x509|certificate/, "the Docker Engine does not trust the certificate of its registry"],
  [/no such host|connection refused|timeout|deadline exceeded|EOF/i, "the Docker Engine cannot reach its registry"],
];

/** Returns why a pull failed. Omits quoted answers, because they may come from a service in the engine's private network. */
export const findPullReason = (message: string): string => {
  const [, reason] = (quotesAnswer(message) ? [] : PULL_REASONS).find(([pattern]) => pattern.test(message)) ?? [];
  if (reason !== undefined) return reason;
  const [, status] = /(?:HTTP|status(?: code)?:?|request to \S+) ([45]\d\d)\b/i.exec(message) ?? [];
  return status === undefined ? "its registry's answer cannot be read" : `its registry answered with status ${status}`;
};

const checkLabels = (name: string, image: Image): Image => {
  checkImageLabels(name, image.labels);
  return image;
};

/** Returns the engine's image for the platform; undefined if it does not have it. Throws ProvisionError for an invalid name. */
export const findImage = async (
  { engine, signal }: Pull,
  image: string,
  platform?: Platform,
): Promise<Image | undefined> => {
  // The name may come from a parameter, and must not change the URL path that contains it.
  if (!IMAGE.test(image)) throw new ProvisionError(`${image} is not an image name.`);
  try {
    const path = `/images/${image}/json`;
    // An engine that stores images for several platforms returns the image for this one. Other engines ignore the query.
    const query: Record<string, string> = platform ? { platform: JSON.stringify(platform) } : {};
    const inspected = await engine.json<InspectedImage>("look for the image", "GET", path, { query, signal });
    if (platform && !isForPlatform(inspected ?? {}, platform)) return undefined;
    return {
      id: inspected?.Id ?? "",
      architecture: inspected?.Architecture ?? "",
      user: inspected?.Config?.User || parseDevcontainerUser(inspected),
      config_user: inspected?.Config?.User ?? "",
      triggers: inspected?.Config?.OnBuild ?? [],
      labels: inspected?.Config?.Labels ?? {},
      created_at: Date.parse(inspected?.Created ?? "") || 0,
      digests: inspected?.RepoDigests ?? [],
    };
  } catch (error) {
    if (error instanceof EngineError && error.status === 404) return undefined;
    throw error;
  }
};

/** An image name: parts of letters, digits and single separators, with an optional tag and digest. */
const IMAGE =
  /^[a-zA-Z0-9]+([._-]+[a-zA-Z0-9]+)*(:\d+)?(\/[a-zA-Z0-9]+([._-]+[a-zA-Z0-9]+)*)*(:[\w][\w.-]*)?(@[a-z0-9]+:[a-f0-9]+)?$/;

type InspectedImage = {
  readonly Id?: string;
  readonly Created?: string;
  readonly Architecture?: string;
  readonly Os?: string;
  readonly Variant?: string;
  readonly RepoDigests?: readonly string[] | null;
  readonly Config?: {
    readonly User?: string;
    readonly Labels?: Readonly<Record<string, string>> | null;
    readonly OnBuild?: readonly string[] | null;
  };
};

/** Development images name their user in this label (containers.dev), in one object or in a list. The last object with a user counts. */
const parseDevcontainerUser = (image: InspectedImage | undefined): string => {
  try {
    const parsed = parseJson(image?.Config?.Labels?.["devcontainer.metadata"] ?? "[]");
    const users = (Array.isArray(parsed) ? parsed : [parsed]).flatMap((one: Record<string, unknown> | null) => {
      const user = one?.remoteUser ?? one?.containerUser;
      return typeof user === "string" && /^[a-zA-Z0-9_][a-zA-Z0-9_.-]*$/.test(user) ? [user] : [];
    });
    return users.at(-1) ?? "";
  } catch {
    return "";
  }
};

/** Pulls the image for the platform, with credentials in `headers` if its registry requires them. Throws EngineError. */
export const fetchImage = async (
  { engine, clock, report, stage, signal }: Pull,
  image: string,
  headers: Readonly<Record<string, string>> = {},
  platform?: Platform,
): Promise<void> => {
  report.log("info", stage, `Fetching the image ${image}.`);
  const layers = new Map<string, { current: number; total: number }>();
  const seen = new Set<string>();
  let nextReportAt = clock.monotonic() + PROGRESS_INTERVAL_MS;
  const onProgress = (line: unknown): void => {
    const { id = "", status = "", error, progressDetail } = line as Progress;
    if (error !== undefined) throw new EngineError(0, `The image ${image} cannot be fetched: ${error}`);
    if (status === "Downloading" && progressDetail?.total) {
      layers.set(id, { current: progressDetail.current ?? 0, total: progressDetail.total });
    }
    const text = id === "" ? status : `${id}: ${status}`;
    if (!PROGRESS_STATES.has(status) && text !== "" && !seen.has(text) && seen.size < 1_000) {
      seen.add(text);
      report.log("info", stage, text);
    }
    if (clock.monotonic() >= nextReportAt && layers.size > 0) {
      nextReportAt = clock.monotonic() + PROGRESS_INTERVAL_MS;
      report.log("info", stage, formatProgress([...layers.values()]));
    }
  };
  await engine.lines(
    "fetch the image",
    "POST",
    "/images/create",
    {
      query: Object.assign(toPullQuery(image), platform ? { platform: formatPlatform(platform) } : {}),
      headers,
      signal,
      timeout: PULL_IDLE_TIMEOUT_MS,
    },
    onProgress,
  );
};

/** Without a tag, the engine would pull all tags. */
const toPullQuery = (image: string): Record<string, string> => {
  const digest = image.indexOf("@");
  if (digest > 0) return { fromImage: image.slice(0, digest), tag: image.slice(digest + 1) };
  const colon = image.lastIndexOf(":");
  // A colon before the last slash belongs to the registry's port.
  return colon > image.lastIndexOf("/")
    ? { fromImage: image.slice(0, colon), tag: image.slice(colon + 1) }
    : { fromImage: image, tag: "latest" };
};

const formatProgress = (layers: readonly { current: number; total: number }[]): string => {
  const sum = (key: "current" | "total"): number => layers.reduce((total, one) => total + one[key], 0);
  return `Downloaded ${formatSize(sum("current"))} of ${formatSize(sum("total"))}.`;
};
