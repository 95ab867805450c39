// Wire shapes of a workspace's containers and devcontainers (specification "Container listing", facts/platform 5.3).
import { type Static, Type as t } from "@sinclair/typebox";
import { NullableUuid } from "../nullable-uuid.ts";
import { named, namedObject } from "../shape-names.ts";

/** `starting`, `stopping` and `deleting` are transitions: no other operation starts in the meantime. */
export const DEVCONTAINER_STATUSES = ["running", "stopped", "starting", "stopping", "deleting", "error"] as const;
export type DevcontainerStatus = (typeof DEVCONTAINER_STATUSES)[number];

export const Container = namedObject("Container", {
  id: t.String({ description: "As the container engine names it." }),
  name: t.String(),
  image: t.String(),
  created_at: t.String({ format: "date-time" }),
  running: t.Boolean(),
  status: t.String({ description: "The engine's own text, such as `Up 2 hours`." }),
  labels: t.Record(t.String(), t.String()),
  volumes: t.Record(t.String(), t.String(), {
    description: "Mounts: volume name or host path to the path in the container.",
  }),
  ports: t.Array(
    t.Object({
      network: t.String({ description: "`tcp` or `udp`." }),
      port: t.Integer({ description: "Inside the container." }),
      host_ip: t.String({ description: "Empty when the port is not published." }),
      host_port: t.Integer({ description: "0 when the port is not published." }),
    }),
  ),
});
export type Container = Static<typeof Container>;

const DevcontainerFields = {
  id: t.String({ format: "uuid", description: "Always the same for this folder and file." }),
  name: t.String({ description: "The sanitized name of the folder, with a number if necessary to make it unique." }),
  workspace_folder: t.String(),
  config_path: t.String(),
  status: t.Unsafe<DevcontainerStatus>(
    t.Union(DEVCONTAINER_STATUSES.map((status: DevcontainerStatus) => t.Literal(status))),
  ),
  dirty: t.Boolean({ description: "The file has changed since the container was created." }),
  error: t.Optional(t.String({ description: "Why the last attempt to create it failed." })),
  container: t.Optional(Container),
  agent: t.Optional(
    t.Object(
      { id: t.String({ format: "uuid" }), name: t.String(), directory: t.String() },
      { description: "The agent inside it, a child of this one." },
    ),
  ),
};

export const Devcontainer = namedObject("Devcontainer", { ...DevcontainerFields, subagent_id: NullableUuid });
export type Devcontainer = Static<typeof Devcontainer>;

/** A devcontainer as a daemon reports it, with a plain ID as in the protocols between programs. */
export const FoundDevcontainer = namedObject("FoundDevcontainer", {
  ...DevcontainerFields,
  subagent_id: t.Union([t.String({ format: "uuid" }), t.Null()]),
});
export type FoundDevcontainer = Static<typeof FoundDevcontainer>;

const containerListSchema = <D extends typeof Devcontainer | typeof FoundDevcontainer>(devcontainer: D) =>
  t.Object({
    containers: t.Array(Container, { description: "Newest first; stopped ones, too." }),
    devcontainers: t.Array(devcontainer, { description: "By workspace folder." }),
    warnings: t.Array(t.String(), { description: "For display." }),
  });

export const ContainerListing = named("ContainerListing", containerListSchema(Devcontainer));
export type ContainerListing = Static<typeof ContainerListing>;
export const FoundContainers = containerListSchema(FoundDevcontainer);
export type FoundContainers = Static<typeof FoundContainers>;
