// The typed service of the private network, for agents and users' clients. A separate file, so that a command line that joins the network
// does not load the agent service.
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Opener } from "./drpc/client.ts";
import {
  type AgentSchema,
  type DERPMapSchema,
  Tailnet,
  Workspace_Status,
  type WorkspaceSchema,
} from "./gen/tailnet_pb.ts";
import { type Client, createClient, type Handlers } from "./service.ts";

export { Tailnet, Workspace_Status };
export type TailnetHandlers = Handlers<typeof Tailnet>;
/** A relay map in the form that handlers return. */
export type DerpMapInit = MessageInitShape<typeof DERPMapSchema>;
/** A workspace, and one of its agents, in the form for desktop clients. */
export type TailnetWorkspaceInit = MessageInitShape<typeof WorkspaceSchema>;
export type TailnetAgentInit = MessageInitShape<typeof AgentSchema>;

export const createTailnetClient = (session: Opener): Client<typeof Tailnet> => createClient(Tailnet, session);
