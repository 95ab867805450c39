// Converts the workspace context that an agent pushes into what is stored, within upstream's limits (facts/wire 1.5, rule CX-6). A context
// over a limit is rejected as a whole.
import { invalid, invalidField, notFound } from "#base/errors.ts";
import { findAgentById } from "#domain/agents/find.ts";
import { loadKnownSecrets } from "#domain/chats/known-secrets.ts";
import { RESOURCE_STATUSES, type StoredResource } from "#schema/chats/chat-context.ts";
import { SecretMask } from "#src/tools/mask.ts";
import type { ContextResource, PushContextStateRequest } from "#src/wire/gen/agent_pb.ts";
import { type AgentHandlers, toCount } from "#src/wire/index.ts";
import type { ApiContext } from "../../context.ts";
import { toWord } from "./translate.ts";

const MAX = { resources: 1_000, body: 256 * 1024, total: 4 * 1024 * 1024, words: 4_096 };

export const contextService = (ctx: ApiContext, agent_id: string): Pick<AgentHandlers, "pushContextState"> => ({
  async pushContextState(request) {
    const mask = await loadMask(ctx, agent_id);
    const accepted = await ctx.agents.ask(agent_id, "reportContext", {
      version: toCount(request.version),
      initial: request.initial,
      error: mask.text(request.snapshotError).slice(0, MAX.words),
      resources: toResources(request).map((one) => mask.result(one)),
    });
    return { accepted };
  },
});

/** Models read the context, like the results of tools: neither may contain secrets of the workspace's owner. */
const loadMask = async (ctx: ApiContext, agent_id: string): Promise<SecretMask> => {
  const place = await findAgentById(ctx.store, agent_id);
  if (!place) throw notFound();
  const { owner_id, workspace_id } = place;
  return new SecretMask(await loadKnownSecrets(ctx, { chat_id: "", owner_id, workspace_id }));
};

const toResources = ({ resources }: PushContextStateRequest): StoredResource[] => {
  if (resources.length > MAX.resources) throw invalidField("resources", `must be at most ${MAX.resources}`);
  let total = 0;
  return resources.map((one) => {
    const made = toResource(one);
    total += (made.body?.length ?? 0) + (made.tools ? JSON.stringify(made.tools).length : 0);
    if (total > MAX.total) throw invalid(`The resources have more than ${MAX.total} bytes.`);
    return made;
  });
};

const KINDS = { instructionFile: "instruction_file", skill: "skill", mcpConfig: "mcp_config", mcpServer: "mcp_server" };

const toResource = ({ source, sourcePath, sizeBytes, status, error, body }: ContextResource): StoredResource => {
  if (body.case === undefined) throw invalidField("resources", "need a body that says what they are");
  const word = toWord(RESOURCE_STATUSES, status, 1, "status");
  return {
    kind: KINDS[body.case] as StoredResource["kind"],
    status: isBeginning(word, body) ? "ok" : word,
    source: (body.case === "mcpServer" ? body.value.serverName || source : sourcePath || source).slice(0, MAX.words),
    size_bytes: toCount(sizeBytes),
    error: error.slice(0, MAX.words),
    ...(word === "ok" || isBeginning(word, body) ? toBody(body) : {}),
    ...(isBeginning(word, body) ? { truncated: true as const } : {}),
  };
};

/** Slipway's daemon sends the beginning of an instruction file that is too long, and that part is used; other agents send nothing. */
const isBeginning = (status: string, body: ContextResource["body"]): boolean =>
  status === "oversize" && body.case === "instructionFile" && body.value.content.byteLength > 0;

const toBody = (body: ContextResource["body"]): Partial<StoredResource> => {
  switch (body.case) {
    case "instructionFile":
      return { body: decodeText(body.value.content) };
    case "skill":
      return {
        body: decodeText(body.value.meta),
        skill_name: body.value.name.slice(0, MAX.words),
        skill_description: body.value.description.slice(0, MAX.words),
      };
    case "mcpServer":
      return {
        tools: body.value.tools.map(({ name, description, inputSchema }) => ({
          name,
          description,
          input_schema: inputSchema ?? { type: "object" },
        })),
      };
    default:
      return {};
  }
};

const decodeText = (bytes: Uint8Array): string => {
  if (bytes.byteLength > MAX.body) throw invalid(`One resource has more than ${MAX.body} bytes.`);
  return new TextDecoder().decode(bytes);
};
