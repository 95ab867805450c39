// Converts the `docker` section of a resource to the body of a Docker Engine request. Rejects invalid numbers and names, because
// placeholders may have inserted them after the import. Pure.
import { PROGRAM_PATH } from "#base/program-tar.ts";
import type { ManifestContainer, ManifestResource } from "#schema/templates/manifest.ts";
import { ProvisionError, type ProvisionRequest } from "../provisioner.ts";
import { checkNetwork } from "./network.ts";
import { getContainerPrefix, WORKSPACE_LABEL } from "./volumes.ts";

/** Seconds that a container may take to stop before it is killed. */
export const STOP_GRACE_S = 30;
export const GRACE_LABEL = "slipway.stop_grace";

export type Agent = { readonly id: string; readonly token: string };

/** A container resource and the agent that runs in it. */
export type ContainerSpec = {
  readonly resource: ManifestResource;
  readonly docker: ManifestContainer;
  readonly agent?: Agent;
};

/** Returns the containers of a build. Throws ProvisionError for an agent without a container. */
export const listContainerSpecs = ({ manifest, agents }: ProvisionRequest): ContainerSpec[] =>
  manifest.resources.flatMap((resource) => {
    const [agentSpec] = resource.agents ?? [];
    const agent = agentSpec && agents.find(({ name }) => name === agentSpec.name);
    if (resource.docker) return [{ resource, docker: resource.docker, ...(agent ? { agent } : {}) }];
    if (agentSpec)
      throw new ProvisionError(`The agent ${agentSpec.name} has no container: ${resource.name} has no key docker.`);
    return [];
  });

export const buildLabels = ({ workspace, owner, build_id }: ProvisionRequest): Record<string, string> => ({
  [WORKSPACE_LABEL]: workspace.id,
  "slipway.workspace": workspace.name,
  "slipway.owner": owner.username,
  "slipway.build_id": build_id,
});

/** Returns the same name in each build, so that an interrupted build can be repeated. */
export const toContainerName = (request: ProvisionRequest, resource: string): string =>
  getContainerPrefix(request.workspace.id) + resource;

/** Settings of a container that are not in its template. */
export type ContainerSettings = {
  /** The server's URL for the container. */
  readonly access_url: string;
  /** Identifies this run. */
  readonly run: string;
  /** The network to use if the template names none. */
  readonly network: string;
  /** The user that the image intends, used if the template names none; empty for the engine's default. */
  readonly user: string;
  /** Maps the template's name of a volume to the engine's name. */
  readonly volumeFor: (volume: string) => string;
};

/** Maximum number of processes and threads per container: enough to compile programs, but not enough to exhaust the machine. */
const MAX_PROCESSES = 16_384;

/** Returns the body of `POST /containers/create`. It contains the agent's token. */
export const toContainerBody = (
  request: ProvisionRequest,
  { resource, docker, agent }: ContainerSpec,
  { access_url, run, volumeFor, ...defaults }: ContainerSettings,
): Record<string, unknown> => {
  const { command, volumes = [], memory, cpus, stop_grace = STOP_GRACE_S } = docker;
  const user = docker.user || defaults.user;
  const network = docker.network ? checkNetwork(docker.network) : defaults.network;
  const env = {
    ...docker.env,
    ...(agent ? { SLIPWAY_AGENT_TOKEN: agent.token, SLIPWAY_AGENT_URL: access_url } : {}),
  };
  const ownCommand = command ? { Cmd: command } : {};
  return {
    Image: docker.image,
    Hostname: toHostname(request.workspace.name),
    Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
    Labels: {
      ...docker.labels,
      ...buildLabels(request),
      "slipway.resource": resource.name,
      "slipway.run": run,
      [GRACE_LABEL]: String(stop_grace),
    },
    ...(user ? { User: user } : {}),
    ...(agent ? { Entrypoint: [...(command ?? []), PROGRAM_PATH, "agent"], Cmd: [] } : ownCommand),
    StopTimeout: stop_grace,
    HostConfig: {
      // The processes that terminals leave behind need an init process, which the daemon is not.
      Init: true,
      RestartPolicy: { Name: "unless-stopped" },
      ExtraHosts: ["host.docker.internal:host-gateway"],
      Mounts: volumes.map(({ name, path, read_only = false }) => ({
        Type: "volume",
        Source: volumeFor(name),
        Target: path,
        ReadOnly: read_only,
      })),
      NetworkMode: network,
      PidsLimit: MAX_PROCESSES,
      // With raw sockets, a container could impersonate other containers in its network.
      CapDrop: ["NET_RAW"],
      ...(memory ? { Memory: parseBytes(memory) } : {}),
      ...(cpus === undefined || cpus === "" ? {} : { NanoCpus: toNanoCpus(cpus) }),
    },
    // The workspace's other containers can reach this one by its resource's name.
    ...(docker.network ? {} : { NetworkingConfig: { EndpointsConfig: { [network]: { Aliases: [resource.name] } } } }),
  };
};

/** Parses `512m` or `4g`; a plain number is in bytes. */
export const parseBytes = (text: string): number => {
  const [, number, unit = ""] = /^(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?$/i.exec(text.trim()) ?? [];
  if (number === undefined) throw new ProvisionError(`${text} is not an amount of memory such as 512m or 4g.`);
  return Math.round(Number(number) * 1024 ** ["", "k", "m", "g", "t"].indexOf(unit.toLowerCase()));
};

const toNanoCpus = (cpus: number | string): number => {
  const number = Number(cpus);
  if (Number.isFinite(number) && number > 0) return Math.round(number * 1e9);
  throw new ProvisionError(`${cpus} is not a number of CPUs such as 0.5 or 4.`);
};

const toHostname = (name: string): string =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, "-")
    .slice(0, 63);
