// Wire shape of what an external machine needs to become the agent of a workspace.
import { type Static, Type as t } from "@sinclair/typebox";
import { namedObject } from "../shape-names.ts";

export const ExternalAgentCredentials = namedObject("ExternalAgentCredentials", {
  command: t.String({
    description: "The command to run on the machine. It downloads the program from this server and starts it.",
  }),
  agent_token: t.String({
    description: "The token that the agent signs in with. Anyone who has it can act as the agent.",
  }),
});
export type ExternalAgentCredentials = Static<typeof ExternalAgentCredentials>;
