// From the `docker` section of a resource to what the Docker Engine is asked for. Pure. Refuses what is no number or name once the
// placeholders are filled in.
import { PROGRAM_PATH } from "#base/program-tar.ts";
import type { ManifestContainer, ManifestResource } from "#schema/templates/manifest.ts";
import { ProvisionError, type ProvisionRequest } from "../provisioner.ts";
import { checkNetwork } from "./network.ts";
import { WORKSPACE_LABEL } from "./volumes.ts";

/** Seconds a container has to stop on its own. */
export const STOP_GRACE = 30;
export const GRACE_LABEL = "slipway.stop_grace";

export type Agent = { readonly id: string; readonly token: string };

/** A resource that is a container, and the agent that is to run in it. */
export type Wanted = {
  readonly resource: ManifestResource;
  readonly docker: ManifestContainer;
  readonly agent?: Agent;
};

/** The containers of a build. Throws ProvisionError when an agent has none. */
export const wantedContainers = ({ manifest, agents }: ProvisionRequest): Wanted[] =>
  manifest.resources.flatMap((resource) => {
    const [named] = resource.agents ?? [];
    const agent = named && agents.find(({ name }) => name === named.name);
    if (resource.docker) return [{ resource, docker: resource.docker, ...(agent ? { agent } : {}) }];
    if (named)
      throw new ProvisionError(`The agent ${named.name} has no container: ${resource.name} has no key docker.`);
    return [];
  });

export const makeLabels = ({ workspace, owner, build_id }: ProvisionRequest): Record<string, string> => ({
  [WORKSPACE_LABEL]: workspace.id,
  "slipway.workspace": workspace.name,
  "slipway.owner": owner.username,
  "slipway.build_id": build_id,
});

/** The name says whose it is and is the same each time, so that a build can be repeated. */
export const containerName = (request: ProvisionRequest, resource: string): string =>
  `slipway-${request.workspace.id}-${resource}`;

/** What a container is made with alongside what its template says. */
export type Surroundings = {
  /** Where it reaches the server. */
  readonly access_url: string;
  /** Marks this very run. */
  readonly run: string;
  /** The network, when the template names none. */
  readonly network: string;
  /** Who the image is made for, when the template names nobody; empty: whom the engine takes. */
  readonly user: string;
  /** What the engine calls the volume that the template calls `volume`. */
  readonly volumeFor: (volume: string) => string;
};

/** Processes and threads of one container: enough for builds, too few to stop the machine. */
const MAX_PROCESSES = 16_384;

/** The body of `POST /containers/create`. Holds the agent's token. */
export const containerBody = (
  request: ProvisionRequest,
  { resource, docker, agent }: Wanted,
  { access_url, run, volumeFor, ...usual }: Surroundings,
): Record<string, unknown> => {
  const { command, volumes = [], memory, cpus, stop_grace = STOP_GRACE } = docker;
  const user = docker.user || usual.user;
  const network = docker.network ? checkNetwork(docker.network) : usual.network;
  const env = {
    ...docker.env,
    ...(agent ? { SLIPWAY_AGENT_TOKEN: agent.token, SLIPWAY_AGENT_URL: access_url } : {}),
  };
  return {
    Image: docker.image,
    Hostname: hostName(request.workspace.name),
    Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
    Labels: {
      ...docker.labels,
      ...makeLabels(request),
      "slipway.resource": resource.name,
      "slipway.run": run,
      [GRACE_LABEL]: String(stop_grace),
    },
    ...(user ? { User: user } : {}),
    ...(agent ? { Entrypoint: [...(command ?? []), PROGRAM_PATH, "agent"], Cmd: [] } : command ? { Cmd: command } : {}),
    StopTimeout: stop_grace,
    HostConfig: {
      // The daemon is no init: someone must collect the processes that terminals leave behind.
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
      // With raw sockets a container could speak in the name of others in its network.
      CapDrop: ["NET_RAW"],
      ...(memory ? { Memory: parseBytes(memory) } : {}),
      ...(cpus === undefined || cpus === "" ? {} : { NanoCpus: nanoCpus(cpus) }),
    },
    // Where there are several containers, each is found by its resource's name.
    ...(docker.network ? {} : { NetworkingConfig: { EndpointsConfig: { [network]: { Aliases: [resource.name] } } } }),
  };
};

/** `512m`, `4g`; a number alone is bytes. */
export const parseBytes = (text: string): number => {
  const [, number, unit = ""] = /^(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?$/i.exec(text.trim()) ?? [];
  if (number === undefined) throw new ProvisionError(`${text} is not an amount of memory such as 512m or 4g.`);
  return Math.round(Number(number) * 1024 ** ["", "k", "m", "g", "t"].indexOf(unit.toLowerCase()));
};

const nanoCpus = (cpus: number | string): number => {
  const number = Number(cpus);
  if (Number.isFinite(number) && number > 0) return Math.round(number * 1e9);
  throw new ProvisionError(`${cpus} is not a number of CPUs such as 0.5 or 4.`);
};

const hostName = (name: string): string =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, "-")
    .slice(0, 63);
