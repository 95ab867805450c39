// How containers are made: the settings that the server and a worker of its own (verb `provisioner`) share.
import { baseUrl, matching, path } from "./kinds.ts";
import { optional } from "./setting.ts";

export const DOCKER_SETTINGS = {
  docker_host: optional(
    matching(/^[a-z]+:\/\/\S+$/, "unix:///path/of/socket, tcp://host:port or an http(s) URL", "URL"),
    {
      group: "Workspaces",
      help: "Where the Docker Engine answers, for templates with the provisioner `docker`.",
      absent: "the variable DOCKER_HOST, else unix:///var/run/docker.sock",
      otherVariable: "DOCKER_HOST",
    },
  ),
  docker_access_url: optional(baseUrl, {
    group: "Workspaces",
    help: "How containers reach the server.",
    absent: "the access URL; where that names this machine by a loopback name, host.docker.internal instead",
  }),
  agent_binary: optional(path, {
    group: "Workspaces",
    help: "The Linux binary of this program that is put into containers as the workspace's daemon.",
    absent: "the running binary; required when the server runs from source",
  }),
  agent_binaries: optional(path, {
    group: "Workspaces",
    help: "A folder with this program for other systems, named slipway-<os>-<arch> as `bun run build --targets` makes them; machines fetch them from /bin to become agents.",
    absent: "the folder of the binary that runs",
  }),
} as const;
