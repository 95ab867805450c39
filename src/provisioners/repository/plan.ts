// Creates the plan of a repository from its files. Reads them through an interface, so that this works with a remote host and in tests.
import type { RepositoryPlan } from "#schema/templates/repository.ts";
import { applyService, readDevfile, readDockerfile, readGitpod } from "./config-files.ts";
import { type Configuration, createConfiguration, recordDropped } from "./configuration.ts";
import { detect } from "./detect.ts";
import { readDevcontainer, toProjectFolder } from "./devcontainer.ts";

/** The files of one commit. */
export type RepositoryFiles = {
  readonly commit: string;
  /** Paths of all files. */
  readonly files: readonly string[];
  /** Returns the text of a file; undefined if it is missing, not text, or too large. */
  read(path: string): Promise<string | undefined>;
  /** Returns Git's ID of a file or folder; undefined if it does not exist. The path of the repository's top folder is empty. */
  getObjectId(path: string): Promise<string | undefined>;
};

type RepositoryLocation = Pick<RepositoryPlan, "url" | "name" | "ref" | "ref_kind" | "path" | "full_history">;

/** Returns the plan for `location`. `configuration`: the path of the chosen devcontainer.json. */
export const planRepository = async (
  source: RepositoryFiles,
  location: RepositoryLocation,
  configuration?: string,
): Promise<RepositoryPlan> => {
  const { path = "" } = location;
  const detection = detect(source.files, path, configuration);
  const configured = await readConfiguration(source, detection.source, detection.file, location);
  if (configuration !== undefined && detection.file !== configuration) {
    recordDropped(configured, "configuration", `${configuration} is not a devcontainer.json of this repository.`);
  }
  const { build, features, ...otherParts } = configured;
  const buildWithIds = await addIds(source, configured, build);
  const image = buildWithIds ? undefined : (otherParts.image ?? detection.image);
  return {
    ...location,
    commit: source.commit,
    source: detection.source,
    ...(detection.file === undefined ? {} : { configuration: detection.file }),
    choices: detection.choices,
    hints: detection.hints,
    ...otherParts,
    ...(image === undefined ? {} : { image }),
    ...(buildWithIds ? { build: buildWithIds } : {}),
    features: await addFeatureIds(source, configured, features),
  };
};

const readConfiguration = async (
  source: RepositoryFiles,
  kind: RepositoryPlan["source"],
  file: string | undefined,
  { name }: RepositoryLocation,
): Promise<Configuration> => {
  if (file === undefined) return createConfiguration();
  if (kind === "dockerfile") return readDockerfile(file);
  const text = await source.read(file);
  if (text === undefined) {
    const config = createConfiguration();
    recordDropped(config, file, "The file cannot be read as text; the default image is used.");
    return config;
  }
  if (kind === "gitpod") return readGitpod(file, text);
  if (kind === "devfile") return readDevfile(file, text);
  const { configuration, compose } = readDevcontainer({ file, text, name, folder: toProjectFolder(file) });
  if (compose) await addService(source, configuration, compose);
  return configuration;
};

const addService = async (
  source: RepositoryFiles,
  config: Configuration,
  { files, service }: { readonly files: readonly string[]; readonly service: string },
): Promise<void> => {
  const [first = "", ...others] = files;
  if (others.length > 0) recordDropped(config, "dockerComposeFile", `Only ${first} is read.`);
  const text = await source.read(first);
  if (text === undefined)
    recordDropped(config, "dockerComposeFile", `${first} is not in the repository; the default image is used.`);
  else applyService(config, first, text, service);
};

/** Adds the IDs of the build's files. Drops the build if a file does not exist. */
const addIds = async (
  source: RepositoryFiles,
  config: Configuration,
  build: Configuration["build"],
): Promise<RepositoryPlan["build"]> => {
  if (!build) return undefined;
  const [tree, dockerfile_id] = await Promise.all([
    source.getObjectId(build.context),
    source.getObjectId(build.dockerfile),
  ]);
  if (tree !== undefined && dockerfile_id !== undefined) return { ...build, tree, dockerfile_id };
  const missing = dockerfile_id === undefined ? build.dockerfile : build.context;
  recordDropped(config, "build", `${missing} is not in the repository; the default image is used.`);
  return undefined;
};

const addFeatureIds = async (
  source: RepositoryFiles,
  config: Configuration,
  features: Configuration["features"],
): Promise<RepositoryPlan["features"]> => {
  const withIds: RepositoryPlan["features"] = [];
  for (const feature of features) {
    if (!feature.id.startsWith("./")) withIds.push(feature);
    else {
      const tree = await source.getObjectId(feature.id.slice(2));
      if (tree === undefined)
        recordDropped(config, `features.${feature.id}`, "The feature's folder is not in the repository.");
      else withIds.push({ ...feature, tree });
    }
  }
  return withIds;
};
