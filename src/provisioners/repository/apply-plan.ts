// Applies a repository's plan to a template's agent and container. Pure.

import { posix } from "node:path";
import { quoteForShell } from "#base/text/shell-quote.ts";
import type { ManifestAgent, ManifestApp, ManifestResource } from "#schema/templates/manifest.ts";
import { parsePlan, type RepositoryNote, type RepositoryPlan } from "#schema/templates/repository.ts";
import { FOLDER_VARIABLE } from "./configuration.ts";
import { isDefaultImage } from "./detect.ts";
import { toRepositoryScripts } from "./script.ts";

/** The folder of clones in containers, unless the plan names another folder. */
const CLONES_FOLDER = "/workspaces";
const FOLDER_PLACEHOLDER = new RegExp(`\\$\\{${FOLDER_VARIABLE}\\}`, "g");

/** Adds scripts, variables, apps and volumes for the repository of the resource's agent. Changes nothing if `repository` is not a plan. */
export const addRepositories = (resource: ManifestResource): ManifestResource => {
  const [agent, ...others] = resource.agents ?? [];
  const plan = agent?.repository === undefined ? undefined : parsePlan(agent.repository);
  if (!agent || !plan) return resource;
  const isContainer = resource.docker !== undefined;
  const root = isContainer ? (plan.root ?? `${CLONES_FOLDER}/${plan.name}`) : `~/${plan.name}`;
  return {
    ...resource,
    ...(resource.docker ? { docker: toContainer(resource.docker, plan, root) } : {}),
    agents: [toAgent(agent, plan, { root, isContainer }), ...others],
  };
};

type CloneLocation = { readonly root: string; readonly isContainer: boolean };

const toAgent = (agent: ManifestAgent, plan: RepositoryPlan, location: CloneLocation): ManifestAgent => {
  const { root, isContainer } = location;
  const folder = resolveFolder(plan, location);
  // Outside of a container, paths begin with `~`, which the shell does not expand inside quotes.
  const toShellPath = (path: string): string =>
    isContainer ? quoteForShell(path) : `"$HOME"${quoteForShell(path.slice(1))}`;
  const folderText = isContainer ? root : `\${HOME}${root.slice(1)}`;
  const fillVariables = (variables: Readonly<Record<string, string>>): [string, string][] =>
    Object.entries(variables).map(([name, value]) => [name, value.replace(FOLDER_PLACEHOLDER, () => folderText)]);
  const stateFolder = isContainer ? "/tmp/slipway-repository" : '"$HOME/.local/state/slipway/repository"';
  return {
    ...agent,
    directory: folder,
    env: {
      ...agent.env,
      ...Object.fromEntries(isContainer ? [] : fillVariables(plan.container_env)),
      ...Object.fromEntries(fillVariables(plan.remote_env)),
    },
    scripts: [
      ...toRepositoryScripts(plan, { root: toShellPath(root), folder: toShellPath(folder), state: stateFolder }),
      ...(agent.scripts ?? []),
    ],
    apps: [...(agent.apps ?? []), ...listPortApps(plan, agent.apps ?? [])],
  };
};

/** Returns the folder to open: the folder in the configuration if it is in the clone, or else the folder that the user has requested. */
const resolveFolder = (plan: RepositoryPlan, { root, isContainer }: CloneLocation): string => {
  const folder = plan.folder?.replace(FOLDER_PLACEHOLDER, () => root);
  const isInClone =
    folder !== undefined && (folder === root || folder.startsWith(`${root}/`)) && !folder.includes("/../");
  if (isInClone && (isContainer || plan.folder?.startsWith("$"))) return folder;
  return plan.path ? posix.join(root, plan.path) : root;
};

const listPortApps = ({ ports }: RepositoryPlan, existing: readonly ManifestApp[]): ManifestApp[] =>
  ports
    .map(({ port, label, protocol }) => ({
      slug: `port-${port}`,
      display_name: label,
      url: `${protocol}://localhost:${port}`,
      subdomain: true,
    }))
    .filter(({ slug }, index, all) => ![...existing, ...all.slice(0, index)].some((one) => one.slug === slug));

const VOLUME_PREFIX = "repository";

/** Returns true if the volume was added for a repository. */
export const isOfRepository = ({ name }: { readonly name: string }): boolean => name.startsWith(VOLUME_PREFIX);

type Container = NonNullable<ManifestResource["docker"]>;

const toContainer = (docker: Container, plan: RepositoryPlan, root: string): Container => {
  const isBelowClones = root.startsWith(`${CLONES_FOLDER}/`);
  const clone = { name: VOLUME_PREFIX, path: isBelowClones ? CLONES_FOLDER : root };
  const existing = [...(docker.volumes ?? []), clone];
  const added = plan.volumes
    .map(({ name, path }) => ({
      name: `${VOLUME_PREFIX}-${name}`.slice(0, 64),
      path: path.replace(FOLDER_PLACEHOLDER, () => root),
    }))
    .filter(({ path }) => path.startsWith("/") && !existing.some((one) => one.path === path));
  const env = Object.entries(plan.container_env).map(([name, value]) => [
    name,
    value.replace(FOLDER_PLACEHOLDER, () => root),
  ]);
  return {
    ...docker,
    ...(plan.image === undefined ? {} : { image: plan.image }),
    ...(plan.user === undefined ? {} : { user: plan.user }),
    env: { ...docker.env, ...Object.fromEntries(env) },
    volumes: [...existing, ...added],
  };
};

/** Returns notes about the parts of the plan that do not apply to a workspace, for its log and for pages. */
export const collectNotes = (plan: RepositoryPlan, isContainer: boolean): RepositoryNote[] => {
  const reason = "Needs a container: choose a template of the provisioner docker.";
  const containerSettings: [property: string, isSet: boolean][] = [
    ["image", plan.image !== undefined && !isDefaultImage(plan.image)],
    ["build", plan.build !== undefined],
    ["features", plan.features.length > 0],
    ["remoteUser", plan.user !== undefined],
    ["mounts", plan.volumes.length > 0],
    ["hostRequirements", Object.keys(plan.wanted).length > 0],
  ];
  const missing = isContainer ? [] : containerSettings.filter(([, isSet]) => isSet);
  return [...missing.map(([property]) => ({ property, reason })), ...plan.dropped];
};
