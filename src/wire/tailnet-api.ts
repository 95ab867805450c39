// The service of the private network, typed, which agents and people's clients speak. On its own, so that a command line that joins reads
// nothing of what agents say.
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Opener } from "./drpc/client.ts";
import {
  type AgentSchema,
  type DERPMapSchema,
  Tailnet,
  Workspace_Status,
  type WorkspaceSchema,
} from "./gen/tailnet_pb.ts";
import { type Client, clientFor, type Handlers } from "./service.ts";

export { Tailnet, Workspace_Status };
export type TailnetHandlers = Handlers<typeof Tailnet>;
/** Answers as a handler may write them. */
export type DerpMapInit = MessageInitShape<typeof DERPMapSchema>;
/** A workspace, and one of its agents, as desktop clients are shown them. */
export type TailnetWorkspaceInit = MessageInitShape<typeof WorkspaceSchema>;
export type TailnetAgentInit = MessageInitShape<typeof AgentSchema>;

export const tailnetClient = (session: Opener): Client<typeof Tailnet> => clientFor(Tailnet, session);
