// Lists the tools of an MCP server. Each tool is checked separately, so that an invalid definition affects only that tool. Schemas are
// adapted for models when requests are built (rule MC-15). Limits pages, tools and sizes.
import type { Client, StandardSchemaV1 } from "@modelcontextprotocol/client";
import type { StoredTool } from "#schema/chats/chat-context.ts";

const MAX_TOOLS = 200;
const MAX_PAGES = 50;
const MAX_SCHEMA_LENGTH = 65_536;
const MAX_DESCRIPTION_LENGTH = 8_192;

type Options = { readonly timeout: number; readonly signal?: AbortSignal };

/** Lists the tools page by page; of tools with the same name, the first is used. Rejects like the client. */
export const listTools = async (client: Client, options: Options): Promise<readonly StoredTool[]> => {
  const tools = new Map<string, StoredTool>();
  // The cursors of some servers lead back to an earlier page.
  const cursors = new Set<string>();
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES && tools.size < MAX_TOOLS; page += 1) {
    const params = cursor === undefined ? {} : { cursor };
    const { tools: listed, nextCursor } = await client.request({ method: "tools/list", params }, ANY_OBJECT, options);
    for (const tool of Array.isArray(listed) ? listed.flatMap(toStoredTool) : []) {
      if (!tools.has(tool.name)) tools.set(tool.name, tool);
    }
    if (typeof nextCursor !== "string" || cursors.has(nextCursor)) break;
    cursors.add(nextCursor);
    cursor = nextCursor;
  }
  return [...tools.values()].slice(0, MAX_TOOLS);
};

type Members = Readonly<Record<string, unknown>>;
const isMembers = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The package's own schema would reject the whole list because of one tool. */
const ANY_OBJECT: StandardSchemaV1<unknown, Members> = {
  "~standard": {
    version: 1,
    vendor: "slipway",
    validate: (value) => ({ value: isMembers(value) ? value : {} }),
  },
};

const toStoredTool = (listed: unknown): StoredTool[] => {
  const { name, description, inputSchema } = isMembers(listed) ? listed : {};
  if (typeof name !== "string" || name === "" || JSON.stringify(inputSchema ?? {}).length > MAX_SCHEMA_LENGTH)
    return [];
  const shortDescription = typeof description === "string" ? description.slice(0, MAX_DESCRIPTION_LENGTH) : "";
  if (!isMembers(inputSchema)) return [{ name, description: shortDescription, input_schema: inputSchema ?? {} }];
  const { $schema: _, ...input_schema } = inputSchema;
  return [{ name, description: shortDescription, input_schema }];
};
