// Workspace agents: what they send with their token, and what people read of them.
import { Elysia } from "elysia";
import type { ApiContext } from "../context.ts";
import { agentLogs } from "./logs.ts";
import { agentReports } from "./me.ts";
import { oneAgent } from "./one.ts";
import { agentRpc } from "./rpc/index.ts";

export const agents = (ctx: ApiContext) =>
  new Elysia({ prefix: "/workspaceagents" })
    .use(agentReports(ctx))
    .use(agentRpc(ctx))
    .use(agentLogs(ctx))
    .use(oneAgent(ctx));
