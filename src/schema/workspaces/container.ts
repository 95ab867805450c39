// Wire shapes of a workspace's containers and devcontainers (specification "Container listing", facts/platform 5.3).
import { type Static, Type as t } from "@sinclair/typebox";
import { NullableUuid } from "../nullable-uuid.ts";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";

/** While the status is `starting`, `stopping` or `deleting`, no other operation can start. */
export const DEVCONTAINER_STATUSES = ["running", "stopped", "starting", "stopping", "deleting", "error"] as const;
export type DevcontainerStatus = (typeof DEVCONTAINER_STATUSES)[number];

export const Container = namedObject("Container", {
  id: t.String({ description: "The ID of the container, as assigned by the container engine." }),
  name: t.String(),
  image: t.String({ description: "The name of the image that the container was created from." }),
  created_at: t.String({ format: "date-time" }),
  running: t.Boolean(),
  status: t.String({ description: "The status text of the container engine, such as `Up 2 hours`." }),
  labels: t.Record(t.String(), t.String(), { description: "The labels of the container, by name." }),
  volumes: t.Record(t.String(), t.String(), {
    description: "The mounts: volume names or host paths, mapped to paths in the container.",
  }),
  ports: t.Array(
    t.Object({
      network: t.String({ description: "The protocol: `tcp` or `udp`." }),
      port: t.Integer({ description: "The port inside the container." }),
      host_ip: t.String({ description: "The host's IP address; empty if the port is not published." }),
      host_port: t.Integer({ description: "The port on the host; 0 if the port is not published." }),
    }),
    { description: "The ports that the container exposes." },
  ),
});
export type Container = Static<typeof Container>;

const DevcontainerFields = {
  id: t.String({
    format: "uuid",
    description: "The ID of the devcontainer. Always the same for a given folder and file.",
  }),
  name: t.String({
    description: "The sanitized name of the folder, with a number appended if needed to make it unique.",
  }),
  workspace_folder: t.String({ description: "The absolute path of the project's folder in the workspace." }),
  config_path: t.String({ description: "The absolute path of the configuration file, such as `devcontainer.json`." }),
  status: oneOf(
    DEVCONTAINER_STATUSES,
    "The status of the devcontainer. `starting`, `stopping` and `deleting` are operations in progress, which exclude others.",
  ),
  dirty: t.Boolean({ description: "Whether the file has changed since the container was created." }),
  error: t.Optional(t.String({ description: "Why the last attempt to create the container failed." })),
  container: t.Optional({ ...Container, description: "The container; absent until it is created." }),
  agent: t.Optional(
    t.Object(
      {
        id: t.String({ format: "uuid" }),
        name: t.String(),
        directory: t.String({ description: "The path of the project's folder in the container." }),
      },
      { description: "The agent inside the devcontainer, which is a child of this agent." },
    ),
  ),
};

export const Devcontainer = namedObject("Devcontainer", { ...DevcontainerFields, subagent_id: NullableUuid });
export type Devcontainer = Static<typeof Devcontainer>;

/** A devcontainer as a daemon reports it. `subagent_id` is a string or null, as in all protocols between Slipway's programs. */
export const FoundDevcontainer = namedObject("FoundDevcontainer", {
  ...DevcontainerFields,
  subagent_id: t.Union([t.String({ format: "uuid" }), t.Null()]),
});
export type FoundDevcontainer = Static<typeof FoundDevcontainer>;

const containerListSchema = <D extends typeof Devcontainer | typeof FoundDevcontainer>(devcontainer: D) =>
  t.Object({
    containers: t.Array(Container, { description: "The containers, including stopped ones, newest first." }),
    devcontainers: t.Array(devcontainer, { description: "The devcontainers, sorted by workspace folder." }),
    warnings: t.Array(t.String(), { description: "Warnings to display to the user." }),
  });

export const ContainerListing = named("ContainerListing", containerListSchema(Devcontainer));
export type ContainerListing = Static<typeof ContainerListing>;
export const FoundContainers = containerListSchema(FoundDevcontainer);
export type FoundContainers = Static<typeof FoundContainers>;
