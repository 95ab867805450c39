// MCP servers of organizations: the tools they offer to chats, and users' sign-ins.
import type { ApiContext } from "../context.ts";
import { routes } from "../http/routes.ts";
import { mcpServers } from "./servers.ts";
import { mcpSignIn } from "./sign-in.ts";

export const mcp = (ctx: ApiContext) => routes({ prefix: "/organizations" }).use(mcpServers(ctx)).use(mcpSignIn(ctx));
