// Builds the image of a repository. Images are tagged with a key for their configuration, so that each configuration is built only once.
// Removes the least recently used images when their total size exceeds the limit (rules RW-13 to RW-16).
import { sha256 } from "#base/ids.ts";
import { JsonProblem, readBytes } from "#base/json/read.ts";
import { log } from "#base/log.ts";
import { createTarEnd, createTarEntry, joinStreams } from "#base/program-tar.ts";
import type { ManifestContainer } from "#schema/templates/manifest.ts";
import type { RepositoryPlan } from "#schema/templates/repository.ts";
import { ProvisionError } from "../provisioner.ts";
import {
  type Feature,
  omitVersion,
  readFeatureArchive,
  sortByInstallOrder,
  toDockerfile,
  toFeatureFile,
  type WantedFeature,
} from "../repository/features.ts";
import type { RepositorySource, RepositorySources } from "../repository/sources.ts";
import { toBaseKey } from "./bases.ts";
import { withBuildNetwork } from "./build-network.ts";
import { BuildSlots } from "./build-slots.ts";
import { BuildSteps } from "./build-steps.ts";
import { parseBytes } from "./container.ts";
import { type Engine, EngineError } from "./engine.ts";
import { checkDockerfile, checkImageName, checkTriggers, pinDockerfile, REPOSITORY_IMAGE } from "./image-name.ts";
import {
  ensureImage,
  findImage,
  findPullReason,
  type Image,
  PULL_IDLE_TIMEOUT_MS,
  type Pull,
  quotesAnswer,
} from "./pull.ts";
import type { ImageRegistry } from "./registry.ts";

/**
 * Arguments of a build that are not passed to the engine. Docker passes them to every step, but omits them from the layer cache's key. So
 * other repositories would reuse a layer that was fetched through one repository's proxy.
 */
const PROXY_ARGUMENT = /^(?:http|https|ftp|all|no)_proxy$/i;

/** The version of the key format. It must change when images are built differently. */
const VERSION = 3;
const LABEL = "slipway.repository_image";
/** An older image is rebuilt at the next start, to include updates of its base image and features. */
const MAX_AGE_MS = 30 * 86_400_000;
/** Milliseconds without output after which a build is aborted. */
const BUILD_IDLE_TIMEOUT_MS = 15 * 60_000;
/** Timeout of a build, including the download of images and features. */
const BUILD_TIMEOUT_MS = 60 * 60_000;
/** Maximum size of the files that a build sends to the engine. A few kilobytes in Git can contain the same file thousands of times. */
const MAX_CONTEXT_BYTES = 4 * 1024 ** 3;
const MAX_OUTPUT_LINES = 5_000;
const MAX_FEATURES = 32;
/** Maximum size of the archives of all features of an image. They are kept in memory until the engine has them. */
const MAX_FEATURES_BYTES = 64 * 1024 * 1024;

export type ImageBuild = Pull & {
  readonly sources: RepositorySources | undefined;
  /** The user with accounts that can read the repository; empty for none. */
  readonly owner_id: string;
  readonly plan: RepositoryPlan;
  readonly docker: ManifestContainer;
  /** Maximum bytes of all repository images. */
  readonly max_bytes: number;
  /** The registry that shares images with other engines. */
  readonly registry: ImageRegistry | undefined;
  /** Maximum bytes of the files that a build sends to the engine. */
  readonly max_context_bytes?: number | undefined;
  /** Called with the name of each image that the plan needs. */
  readonly onUse?: (name: string) => unknown;
};

export type BuiltImage = Image & { readonly image: string };

/** Running builds by key. Concurrent callers wait for the build and use its image. */
const runningBuilds = new Map<string, Promise<unknown>>();

const buildSlots = new BuildSlots(2);

/** Returns true if the plan's image has to be built. */
export const needsBuild = ({ build, features }: RepositoryPlan): boolean => build !== undefined || features.length > 0;

/** Returns the image for a container's plan. Builds it if necessary. Rejects with ProvisionError, or with the signal's reason. */
export const ensureRepositoryImage = async (build: ImageBuild): Promise<BuiltImage> => {
  const { plan, docker } = build;
  const base = plan.build ? await ensureDockerfileImage(build, plan.build) : await pullPlanImage(build);
  if (plan.features.length === 0) return base;
  const key = toImageKey(["features", base.id, plan.features, plan.user ?? base.user]);
  return getOrBuild(build, key, docker.pull === "always", async (name, limited) => {
    await checkBase(limited, base.image, base.triggers);
    using source = plan.features.some(({ tree }) => tree !== undefined) ? await openSource(limited) : undefined;
    const fetched = await fetchFeatures(limited, source);
    const features = fetched.map(({ feature }) => feature);
    const users = { user: plan.user ?? base.user, image_user: base.config_user };
    const dockerfile = toDockerfile(checkImageId(base.image, base.id), features, users);
    const files = [
      createTarEntry("Dockerfile", new TextEncoder().encode(dockerfile)),
      ...fetched.map(({ archive }, index) => createTarEntry(toFeatureFile(index), archive)),
    ];
    await buildImage(limited, name, joinStreams([...files, createTarEnd()]), { dockerfile: "Dockerfile" });
  });
};

const toImageKey = (parts: readonly unknown[]): string => sha256(JSON.stringify([VERSION, ...parts])).slice(0, 40);

const pullPlanImage = async (build: ImageBuild): Promise<BuiltImage> => {
  const image = build.plan.image ?? build.docker.image;
  checkImageName(image, build.registry?.name);
  return { image, ...(await ensureImage(toGuardedPull(build), image, build.docker.pull ?? "missing")) };
};

/**
 * Returns a pull for which the server fetches the registry's token. If the engine fetched it, the registry could redirect the engine to a
 * service in its private network.
 */
export const toGuardedPull = <P extends Pull & Pick<ImageBuild, "sources" | "owner_id">>(pull: P): P => {
  const { sources, owner_id, signal, clock } = pull;
  if (!sources) return pull;
  const fetchToken = async (image: string): Promise<string | undefined> => {
    const deadline = new AbortController();
    const timeoutError = new Error(`The image ${image} cannot be fetched: its registry takes too long to answer.`);
    const timer = clock.after(PULL_IDLE_TIMEOUT_MS, () => deadline.abort(timeoutError));
    try {
      return await sources.fetchPullToken(image, owner_id, AbortSignal.any([signal, deadline.signal]));
    } catch (error) {
      signal.throwIfAborted();
      throw new ProvisionError((error as Error).message, "", undefined, { cause: error });
    } finally {
      timer.cancel();
    }
  };
  return { ...pull, fetchToken };
};

/** Checks the ONBUILD instructions of a base image, and pulls the images from which they copy. */
const checkBase = async (build: ImageBuild, image: string, triggers: readonly string[]): Promise<void> => {
  for (const copied of checkTriggers(image, triggers, build.registry?.name))
    await ensureImage(toGuardedPull(build), copied, "missing");
};

type DockerfilePlan = NonNullable<RepositoryPlan["build"]>;

/** Returns the image of a Dockerfile in the repository. Its context is one Git tree, so the tree's ID represents every file in it. */
const ensureDockerfileImage = (build: ImageBuild, dockerfilePlan: DockerfilePlan): Promise<BuiltImage> => {
  const { plan, docker } = build;
  const { context, dockerfile, args, tree, target } = dockerfilePlan;
  const isInContext = context === "" || dockerfile.startsWith(`${context}/`);
  const key = toImageKey(["dockerfile", dockerfilePlan, isInContext]);
  return getOrBuild(build, key, docker.pull === "always", async (name, limited) => {
    for (const ignored of Object.keys(args).filter((one) => PROXY_ARGUMENT.test(one)))
      build.report.log("warn", build.stage, `Ignored build argument ${ignored}: proxies are set in the Docker Engine.`);
    const passed = Object.fromEntries(Object.entries(args).filter(([one]) => !PROXY_ARGUMENT.test(one)));
    using source = await openSource(limited);
    await checkIds(source, dockerfilePlan);
    const text = await source.read(dockerfile);
    if (text === undefined) throw new ProvisionError(`${dockerfile} cannot be read at ${plan.commit}.`);
    const ids = new Map<string, string>();
    for (const base of checkDockerfile(text, passed, build.registry?.name, target)) {
      const { id, triggers } = await ensureImage(toGuardedPull(limited), base.image, "missing", base.platform);
      await checkBase(limited, base.image, triggers);
      ids.set(toBaseKey(base), checkImageId(base.image, id));
    }
    // The names may refer to other images by now, so the Dockerfile names the checked images by ID.
    const pinnedText = new TextEncoder().encode(pinDockerfile(text, passed, ids));
    const pinnedName = toDockerfileName(tree);
    const files = [createTarEntry(pinnedName, pinnedText), limitContext(limited, source.archive(tree))];
    const query = {
      dockerfile: pinnedName,
      buildargs: JSON.stringify(passed),
      ...(target === undefined ? {} : { target }),
    };
    // `await` keeps `source` open until the engine has read the archive.
    await buildImage(limited, name, joinStreams(files), query);
  });
};

/** Ends the build when its context has more bytes than allowed. */
const limitContext = (
  { end, max_context_bytes = MAX_CONTEXT_BYTES }: LimitedBuild,
  context: ReadableStream<Uint8Array>,
): ReadableStream<Uint8Array> => {
  let remainingBytes = max_context_bytes;
  return context.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        remainingBytes -= chunk.byteLength;
        if (remainingBytes >= 0) return controller.enqueue(chunk);
        const problem = new ProvisionError(
          `The files of the image's build are larger than ${max_context_bytes} bytes. Set build.context to a folder with fewer files.`,
        );
        end(problem);
        controller.error(problem);
      },
    }),
  );
};

/** Returns the ID. Throws ProvisionError for an engine that reports none. */
const checkImageId = (image: string, id: string): string => {
  if (/^(?:sha256:)?[0-9a-f]{64}$/.test(id)) return id;
  throw new ProvisionError(`The Docker Engine does not report the ID of the image ${image}, which the build needs.`);
};

/** Verifies the plan's IDs against the commit, because they are part of a shared image's key, and the plan may come from a caller. */
const checkIds = async (
  source: RepositorySource,
  { context, dockerfile, tree, dockerfile_id }: DockerfilePlan,
): Promise<void> => {
  const ids = await Promise.all([source.getObjectId(context), source.getObjectId(dockerfile)]);
  if (ids[0] === tree && ids[1] === dockerfile_id) return;
  throw new ProvisionError(
    "The plan of the workspace names other files than the repository's commit has. Open the repository by its link.",
  );
};

/**
 * Returns the name under which the checked Dockerfile is added to its context. The engine must read this text, instead of a link or a file
 * that Git converts. No file of the context has this name, because the name contains the ID of the context's tree, which depends on the
 * names of its files.
 */
const toDockerfileName = (tree: string): string => `.slipway-${tree}.Dockerfile`;

/** A build with a signal that also aborts after a timeout, or when `end` is called. */
type LimitedBuild = ImageBuild & { readonly end: (problem: ProvisionError) => void };

/** Builds an image with this name. */
type BuildFunction = (name: string, limited: LimitedBuild) => Promise<void>;

/**
 * Returns the image with this key. If it is missing or too old, pulls it from the registry or builds it. With `mustBuild`, always builds
 * it. If the build fails, returns the existing image.
 */
const getOrBuild = async (
  build: ImageBuild,
  key: string,
  mustBuild: boolean,
  runBuild: BuildFunction,
): Promise<BuiltImage> => {
  const { report, stage, signal } = build;
  const image = `${REPOSITORY_IMAGE}:${key}`;
  build.onUse?.(image);
  if (runningBuilds.has(key)) report.yieldSlot?.();
  // Waits for a running build of the same key, and then uses its image.
  while (runningBuilds.has(key)) await runningBuilds.get(key)?.catch(() => {});
  signal.throwIfAborted();
  const existing = await findImage(build, image);
  const isOld = existing !== undefined && build.clock.now() - existing.created_at > MAX_AGE_MS;
  if (existing && !isOld && !mustBuild) {
    report.log("info", stage, `Using the existing image of the repository: ${image}.`);
    await markUsed(build.engine, key, signal);
    build.registry?.pushInBackground(build, { image, key, digests: existing.digests });
    return { image, ...existing };
  }
  const work = pullOrBuild(build, { key, image, isRebuild: existing !== undefined, mustBuild }, runBuild);
  runningBuilds.set(key, work);
  try {
    await work;
  } catch (error) {
    signal.throwIfAborted();
    if (!existing) throw error;
    report.log("warn", stage, `The image cannot be rebuilt, so the previous one is used: ${(error as Error).message}`);
    return { image, ...existing };
  } finally {
    runningBuilds.delete(key);
  }
  const built = await findImage(build, image);
  if (!built)
    throw new ProvisionError("The image of the repository was built, but the Docker Engine does not have it.");
  build.registry?.pushInBackground(build, { image, key, digests: built.digests });
  await pruneImages(build, image).catch((error) => {
    log("docker").warn("old images of repositories stay until the next build: {error}", { error });
  });
  return { image, ...built };
};

type MissingImage = {
  readonly key: string;
  readonly image: string;
  readonly isRebuild: boolean;
  readonly mustBuild: boolean;
};

/** Pulls and tags the registry's image, or builds one if the registry has none or only an old one. */
const pullOrBuild = async (
  build: ImageBuild,
  { key, image, isRebuild, mustBuild }: MissingImage,
  runBuild: BuildFunction,
): Promise<void> => {
  const { engine, registry, report, stage, signal, clock, owner_id } = build;
  report.yieldSlot?.();
  using _ = await buildSlots.acquire(owner_id, signal, () => {
    report.log("info", stage, "Waiting for other image builds: two run at the same time, one for each person.");
  });
  const remote = mustBuild ? undefined : await registry?.pull(build, key);
  const pulled = remote === undefined ? undefined : await findImage(build, remote);
  if (remote !== undefined && pulled && clock.now() - pulled.created_at <= MAX_AGE_MS) {
    const query = { repo: REPOSITORY_IMAGE, tag: key };
    await engine.json("tag an image", "POST", `/images/${remote}/tag`, { query, signal });
    return;
  }
  report.log("info", stage, `Building the image of the repository${isRebuild ? " again" : ""}.`);
  await withLimits(build, (limited) => runBuild(image, limited));
};

const withLimits = async (build: ImageBuild, work: (limited: LimitedBuild) => Promise<void>): Promise<void> => {
  const limitReached = new AbortController();
  const end = (problem: ProvisionError): void => limitReached.abort(problem);
  const timeoutText = `The build of the image was ended: it took more than ${BUILD_TIMEOUT_MS / 60_000} minutes.`;
  const timer = build.clock.after(BUILD_TIMEOUT_MS, () => end(new ProvisionError(timeoutText)));
  try {
    await work({ ...build, end, signal: AbortSignal.any([build.signal, limitReached.signal]) });
  } catch (error) {
    build.signal.throwIfAborted();
    limitReached.signal.throwIfAborted();
    throw error;
  } finally {
    timer.cancel();
  }
};

/** Tags the image again, because the engine records when an image was last tagged, which `loadLastUse` reads. */
const markUsed = async (engine: Engine, key: string, signal: AbortSignal): Promise<void> => {
  const query = { repo: REPOSITORY_IMAGE, tag: key };
  await engine.json("tag an image", "POST", `/images/${REPOSITORY_IMAGE}:${key}/tag`, {
    query,
    signal,
    expectedStatuses: [404],
  });
};

const openSource = async ({ sources, plan, owner_id, signal }: ImageBuild): Promise<RepositorySource> => {
  if (!sources)
    throw new ProvisionError("This worker can't build repository images. Let the server itself run the template.");
  try {
    return await sources.open(plan, owner_id, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw new ProvisionError((error as Error).message, "", undefined, { cause: error });
  }
};

type BuildLine = { readonly stream?: string; readonly status?: string; readonly error?: string };

const buildImage = async (
  { engine, clock, report, stage, signal, docker, plan }: ImageBuild,
  name: string,
  tar: ReadableStream<Uint8Array>,
  query: Readonly<Record<string, string>>,
): Promise<void> => {
  let lineCount = 0;
  const logOutput = (text: string): void => {
    for (const line of text.split(/\r?\n/)) {
      if (line.trim() === "" || lineCount > MAX_OUTPUT_LINES) continue;
      lineCount++;
      report.log("info", stage, lineCount > MAX_OUTPUT_LINES ? "The rest of the build's output is omitted." : line);
    }
  };
  const onBuildLine = (line: unknown, steps: BuildSteps): void => {
    const { stream, error } = line as BuildLine;
    if (error !== undefined) {
      const reason = quotesAnswer(error)
        ? `an image that it needs cannot be fetched: ${findPullReason(error)}.`
        : error;
      throw new EngineError(0, `The image of the repository cannot be built: ${reason}`);
    }
    if (stream === undefined) return;
    steps.onOutput(stream);
    logOutput(stream);
  };
  const labels = { [LABEL]: "1", "slipway.repository": plan.url };
  const memory = docker.memory ? { memory: String(parseBytes(docker.memory)), memswap: "-1" } : {};
  const buildQuery = Object.assign({ t: name, rm: "1", forcerm: "1", labels: JSON.stringify(labels) }, memory, query);
  const call = { query: buildQuery, tar, signal, timeout: BUILD_IDLE_TIMEOUT_MS };
  await withBuildNetwork({ engine, clock, signal }, (networkmode) => {
    Object.assign(buildQuery, { networkmode });
    const steps = new BuildSteps(engine, networkmode);
    return engine.lines("build the image", "POST", "/build", call, (line) => onBuildLine(line, steps));
  });
};

type FetchedFeature = { readonly feature: Feature; readonly archive: Uint8Array };

/** Fetches the plan's features and their dependencies, in installation order. */
const fetchFeatures = async (build: ImageBuild, source: RepositorySource | undefined): Promise<FetchedFeature[]> => {
  const { plan, report, stage } = build;
  const fetched = new Map<string, FetchedFeature>();
  const queue: (WantedFeature & { readonly tree?: string | undefined })[] = [...plan.features];
  let remainingBytes = MAX_FEATURES_BYTES;
  for (let wanted = queue.shift(); wanted; wanted = queue.shift()) {
    const id = omitVersion(wanted.id);
    if (fetched.has(id)) continue;
    if (fetched.size >= MAX_FEATURES)
      throw new ProvisionError(`The repository asks for more than ${MAX_FEATURES} features.`);
    report.log("info", stage, `Fetching the feature ${wanted.id}.`);
    const archive = await loadArchive(build, source, { ...wanted, max_bytes: remainingBytes });
    remainingBytes -= archive.length;
    if (remainingBytes < 0) throw createFeaturesTooLargeError();
    const feature = { id: wanted.id, options: wanted.options, metadata: await readMetadata(wanted.id, archive) };
    for (const property of feature.metadata.dropped) {
      report.log("warn", stage, `Ignored in the feature ${wanted.id}: ${property}.`);
    }
    fetched.set(id, { feature, archive });
    queue.push(...feature.metadata.needs);
  }
  const all = [...fetched.values()];
  try {
    return sortByInstallOrder(all.map(({ feature }) => feature)).flatMap((feature) =>
      all.filter((one) => one.feature === feature),
    );
  } catch (error) {
    throw new ProvisionError((error as Error).message);
  }
};

const createFeaturesTooLargeError = (): ProvisionError =>
  new ProvisionError(`The repository's features are larger than ${MAX_FEATURES_BYTES} bytes.`);

const loadArchive = async (
  { sources, owner_id, signal }: ImageBuild,
  source: RepositorySource | undefined,
  { id, tree, max_bytes }: { readonly id: string; readonly tree?: string | undefined; readonly max_bytes: number },
): Promise<Uint8Array> => {
  if (tree !== undefined && source)
    return readBytes(new Response(source.archive(tree)), max_bytes).catch((error) => {
      throw error instanceof JsonProblem ? createFeaturesTooLargeError() : error;
    });
  if (!sources) throw new ProvisionError("This worker can't fetch features. Let the server itself run the template.");
  try {
    return await sources.loadFeature(id, owner_id, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw new ProvisionError((error as Error).message, "", undefined, { cause: error });
  }
};

const readMetadata = (id: string, archive: Uint8Array): Promise<Feature["metadata"]> =>
  readFeatureArchive(id, archive).catch((cause) => {
    throw new ProvisionError((cause as Error).message, "", undefined, { cause });
  });

type ListedImage = { readonly Id: string; readonly Size: number; readonly RepoTags?: readonly string[] | null };

/** Removes the least recently used images until their total size is within the limit. Keeps images that a container uses. */
const pruneImages = async ({ engine, report, stage, signal, max_bytes }: ImageBuild, newest: string): Promise<void> => {
  const query = { filters: JSON.stringify({ label: [LABEL] }) };
  const images = (await engine.json<ListedImage[]>("list images", "GET", "/images/json", { query, signal })) ?? [];
  let size = images.reduce((sum, one) => sum + one.Size, 0);
  if (size <= max_bytes) return;
  const lastUses = new Map<string, number>();
  for (const { Id } of images) lastUses.set(Id, await loadLastUse(engine, Id, signal));
  const oldest = images
    .filter(({ RepoTags }) => !RepoTags?.includes(newest))
    .sort((a, b) => (lastUses.get(a.Id) ?? 0) - (lastUses.get(b.Id) ?? 0));
  for (const candidate of oldest) {
    const { Id, Size, RepoTags } = candidate;
    if (size <= max_bytes) return;
    if (!(await removeImage(engine, candidate, signal))) continue;
    size -= Size;
    report.log("info", stage, `Removed the image ${RepoTags?.[0] ?? Id}, the least recently used one.`);
  }
};

/** Removes the image with this name. If the same image has another key, removes only the name. */
export const removeImageNamed = async (engine: Engine, name: string, signal: AbortSignal): Promise<void> => {
  const expectedStatuses = [404, 409];
  const found = await engine.json<ListedImage>("look at an image", "GET", `/images/${name}/json`, {
    signal,
    expectedStatuses,
  });
  if (!found) return;
  if ((found.RepoTags ?? []).filter(isOwnName).length > 1)
    await engine.json("remove an image", "DELETE", `/images/${name}`, { signal, expectedStatuses });
  else await removeImage(engine, found, signal);
};

const isOwnName = (tag: string): boolean => tag.startsWith(`${REPOSITORY_IMAGE}:`);

/** Removes an image. Returns false if it was already removed, a container uses it, or another image is based on it. */
const removeImage = async (engine: Engine, { Id, RepoTags }: ListedImage, signal: AbortSignal): Promise<boolean> => {
  const expectedStatuses = [404, 409];
  if (await hasContainers(engine, Id, signal)) return false;
  // An image with several tags cannot be removed by ID. One own tag is kept, because the removal by ID may fail.
  const [, ...others] = (RepoTags ?? []).toSorted((a, b) => Number(isOwnName(b)) - Number(isOwnName(a)));
  for (const tag of others)
    await engine.json("remove an image", "DELETE", `/images/${tag}`, { signal, expectedStatuses });
  return (await engine.json("remove an image", "DELETE", `/images/${Id}`, { signal, expectedStatuses })) !== undefined;
};

const hasContainers = async (engine: Engine, id: string, signal: AbortSignal): Promise<boolean> => {
  const query = { all: "true", filters: JSON.stringify({ ancestor: [id] }) };
  const found = await engine.json<unknown[]>("list containers", "GET", "/containers/json", { query, signal });
  return (found ?? []).length > 0;
};

const loadLastUse = async (engine: Engine, id: string, signal: AbortSignal): Promise<number> => {
  type InspectedImage = { readonly Created?: string; readonly Metadata?: { readonly LastTagTime?: string } };
  const found = await engine.json<InspectedImage>("look at an image", "GET", `/images/${id}/json`, {
    signal,
    expectedStatuses: [404],
  });
  const [tagged, created] = [found?.Metadata?.LastTagTime, found?.Created].map((text) => Date.parse(text ?? ""));
  return Math.max(tagged || 0, created || 0);
};
