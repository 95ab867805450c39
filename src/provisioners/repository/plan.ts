// Creates a workspace's plan from a repository's files. Reads through an interface, so that it works with a remote host and in tests.
import type { RepositoryPlan } from "#schema/templates/repository.ts";
import { type Configuration, drop, emptyConfiguration } from "./configuration.ts";
import { detect } from "./detect.ts";
import { folderOf, readDevcontainer } from "./devcontainer.ts";
import { readDevfile, readDockerfile, readGitpod, takeService } from "./other-files.ts";

/** The files of one commit. */
export type RepositoryFiles = {
  readonly commit: string;
  /** Paths of all files. */
  readonly files: readonly string[];
  /** Returns the text of a file; undefined if it is missing, not text, or too large. */
  read(path: string): Promise<string | undefined>;
  /** Returns Git's ID of a file or folder, with an empty path for the top; undefined if it does not exist. */
  idOf(path: string): Promise<string | undefined>;
};

type Where = Pick<RepositoryPlan, "url" | "name" | "ref" | "ref_kind" | "path" | "full_history">;

/** Returns the plan for `where`. `configuration` is the path of the chosen devcontainer.json. */
export const planRepository = async (
  source: RepositoryFiles,
  where: Where,
  configuration?: string,
): Promise<RepositoryPlan> => {
  const { path = "" } = where;
  const found = detect(source.files, path, configuration);
  const asked = await configurationIn(source, found.source, found.file, where);
  if (configuration !== undefined && found.file !== configuration) {
    drop(asked, "configuration", `${configuration} is not a devcontainer.json of this repository.`);
  }
  const { build, features, ...rest } = asked;
  const built = await withIds(source, asked, build);
  const image = built ? undefined : (rest.image ?? found.image);
  return {
    ...where,
    commit: source.commit,
    source: found.source,
    ...(found.file === undefined ? {} : { configuration: found.file }),
    choices: found.choices,
    hints: found.hints,
    ...rest,
    ...(image === undefined ? {} : { image }),
    ...(built ? { build: built } : {}),
    features: await featuresWithIds(source, asked, features),
  };
};

const configurationIn = async (
  source: RepositoryFiles,
  kind: RepositoryPlan["source"],
  file: string | undefined,
  { name }: Where,
): Promise<Configuration> => {
  if (file === undefined) return emptyConfiguration();
  if (kind === "dockerfile") return readDockerfile(file);
  const text = await source.read(file);
  if (text === undefined) {
    const to = emptyConfiguration();
    drop(to, file, "The file cannot be read as text; the default image is used.");
    return to;
  }
  if (kind === "gitpod") return readGitpod(file, text);
  if (kind === "devfile") return readDevfile(file, text);
  const { configuration, compose } = readDevcontainer({ file, text, name, folder: folderOf(file) });
  if (compose) await addService(source, configuration, compose);
  return configuration;
};

const addService = async (
  source: RepositoryFiles,
  to: Configuration,
  { files, service }: { readonly files: readonly string[]; readonly service: string },
): Promise<void> => {
  const [first = "", ...others] = files;
  if (others.length > 0) drop(to, "dockerComposeFile", `Only ${first} is read.`);
  const text = await source.read(first);
  if (text === undefined)
    drop(to, "dockerComposeFile", `${first} is not in the repository; the default image is used.`);
  else takeService(to, first, text, service);
};

/** Adds the IDs of the build's files; drops the build if its files do not exist. */
const withIds = async (
  source: RepositoryFiles,
  to: Configuration,
  build: Configuration["build"],
): Promise<RepositoryPlan["build"]> => {
  if (!build) return undefined;
  const [tree, dockerfile_id] = await Promise.all([source.idOf(build.context), source.idOf(build.dockerfile)]);
  if (tree !== undefined && dockerfile_id !== undefined) return { ...build, tree, dockerfile_id };
  const missing = dockerfile_id === undefined ? build.dockerfile : build.context;
  drop(to, "build", `${missing} is not in the repository; the default image is used.`);
  return undefined;
};

const featuresWithIds = async (
  source: RepositoryFiles,
  to: Configuration,
  features: Configuration["features"],
): Promise<RepositoryPlan["features"]> => {
  const found: RepositoryPlan["features"] = [];
  for (const feature of features) {
    if (!feature.id.startsWith("./")) found.push(feature);
    else {
      const tree = await source.idOf(feature.id.slice(2));
      if (tree === undefined) drop(to, `features.${feature.id}`, "The feature's folder is not in the repository.");
      else found.push({ ...feature, tree });
    }
  }
  return found;
};
