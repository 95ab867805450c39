// Container settings shared by the server and external workers (command `provisioner`).
import type { Problem } from "../usage-error.ts";
import { baseUrl, matching, path, text } from "./kinds.ts";
import { optional, toVariableName, type Values } from "./setting.ts";

export const DOCKER_SETTINGS = {
  docker_host: optional(
    matching(/^[a-z]+:\/\/\S+$/, "unix:///path/of/socket, tcp://host:port or an http(s) URL", "URL"),
    {
      group: "Workspaces",
      help: "The address of the Docker Engine, for templates with the provisioner `docker`.",
      absent: "the variable DOCKER_HOST, else unix:///var/run/docker.sock",
      otherVariable: "DOCKER_HOST",
    },
  ),
  docker_access_url: optional(baseUrl, {
    group: "Workspaces",
    help: "How containers reach the server.",
    absent: "the access URL; where that names this machine by a loopback name, host.docker.internal instead",
  }),
  repository_registry: optional(
    matching(
      /^[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?::\d{1,5})?(?:\/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)+$/,
      "a registry with a path in lower case and without a tag, such as registry.example.com/acme/workspaces",
      "NAME",
    ),
    {
      group: "Workspaces",
      help: "The registry for sharing repository images: each image is pushed there as a tag of this name after it is built, and pulled by Docker Engines that don't have it. The Docker Engine must be able to reach it.",
      absent: "images stay on the Docker Engine that built them",
    },
  ),
  repository_registry_user: optional(text, {
    group: "Workspaces",
    help: "The user name for repository_registry. Requires the password.",
    absent: "no sign-in",
  }),
  repository_registry_password: optional(text, {
    group: "Workspaces",
    help: "The password, or an access token, of repository_registry_user. Prefer the environment variable or a file.",
    absent: "none",
    secret: true,
  }),
  agent_binary: optional(path, {
    group: "Workspaces",
    help: "The Linux binary of this program that runs in containers as the workspace's daemon.",
    absent: "the running binary; required when the server runs from source",
  }),
  agent_binaries: optional(path, {
    group: "Workspaces",
    help: "A folder with this program for other systems, named slipway-<os>-<arch> as `bun run build --targets` creates them. Machines download them from /bin to run agents.",
    absent: "the folder of the running binary",
  }),
} as const;

type DockerValues = Values<Pick<typeof DOCKER_SETTINGS, `repository_registry${"" | "_user" | "_password"}`>>;

/** Returns what is missing in the registry settings. `prefix` is the prefix of the variables. */
export const checkRegistry = (settings: DockerValues, prefix?: string): Problem[] => {
  const {
    repository_registry: name,
    repository_registry_user: user,
    repository_registry_password: password,
  } = settings;
  const detail = "a registry with sign-in needs repository_registry, repository_registry_user and its password";
  const needed = { repository_registry: name, repository_registry_user: user, repository_registry_password: password };
  if (user === undefined && password === undefined) return [];
  return Object.entries(needed)
    .filter(([, value]) => value === undefined)
    .map(([key]) => ({ name: toVariableName(key, prefix), from: "not given", detail }));
};

/** Returns the registry for repository images in the form the provisioner takes. */
export const toImageRegistry = ({
  repository_registry: name,
  repository_registry_user: user,
  repository_registry_password: password,
}: DockerValues): { name: string; user: string | undefined; password: string | undefined } | undefined =>
  name === undefined ? undefined : { name, user, password };
