// Wire shape of open ports in a workspace (specification "Listening ports").
import { type Static, Type as t } from "@sinclair/typebox";
import { namedObject } from "../shape-names.ts";

export const ListeningPort = namedObject("ListeningPort", {
  network: t.String({ description: "The protocol. Always `tcp`." }),
  port: t.Integer({ minimum: 0, maximum: 65_535 }),
  process_name: t.String({ description: "The name of the process; empty if unknown." }),
  is_own: t.Optional(
    t.Boolean({
      description:
        "Whether a program in the workspace listens on the port. If false, it is another program of the same user on the machine. Absent if the agent can't tell.",
    }),
  ),
});
export type ListeningPort = Static<typeof ListeningPort>;

export const ListeningPorts = namedObject("ListeningPorts", {
  ports: t.Array(ListeningPort, {
    description: "The open ports, without those of apps and of common services such as databases.",
  }),
});
export type ListeningPorts = Static<typeof ListeningPorts>;
