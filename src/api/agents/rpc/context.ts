// Converts the workspace context that an agent pushes into what is stored, within upstream's limits (facts/wire 1.5, rule CX-6). A context
// over a limit is rejected as a whole.
import { AppError, invalid, invalidField, notFound } from "#base/errors.ts";
import { createSerialQueue, nextTurn, restAfter } from "#base/retry.ts";
import { findAgentById } from "#domain/agents/find.ts";
import { loadKnownSecrets } from "#domain/chats/known-secrets.ts";
import { RESOURCE_STATUSES, type StoredResource } from "#schema/chats/chat-context.ts";
import { SecretMask } from "#src/tools/mask.ts";
import type { ContextResource, PushContextStateRequest } from "#src/wire/gen/agent_pb.ts";
import { type AgentHandlers, toCount } from "#src/wire/index.ts";
import type { ApiContext } from "../../context.ts";
import { toWord } from "./translate.ts";

const MAX = { resources: 1_000, body: 256 * 1024, total: 4 * 1024 * 1024, shortTextChars: 4_096 };
/** Number of characters of a schema that are masked without a pause. */
const CHARS_BETWEEN_PAUSES = 65_536;

/** Contexts are masked one at a time. Agents wait for the answer, so only an agent that does not wait can have several in the queue. */
const MAX_QUEUED = 4;
const queuedCounts = new Map<string, number>();
const runInOrder = createSerialQueue();

export const contextService = (ctx: ApiContext, agent_id: string): Pick<AgentHandlers, "pushContextState"> => ({
  async pushContextState(request) {
    const resources = toResources(request);
    const masked = await takeTurn(agent_id, async () => {
      const startedAt = ctx.clock.monotonic();
      const masks = await loadMasks(ctx, agent_id);
      const error = masks.texts.text(request.snapshotError.slice(0, MAX.total)).slice(0, MAX.shortTextChars);
      const list: StoredResource[] = [];
      for (const resource of resources) list.push(await maskResource(resource, masks));
      await restAfter(ctx.clock, startedAt);
      return { error, resources: list };
    });
    const accepted = await ctx.agents.ask(agent_id, "reportContext", {
      version: toCount(request.version),
      initial: request.initial,
      ...masked,
    });
    return { accepted };
  },
});

const takeTurn = async <T>(agent_id: string, work: () => Promise<T>): Promise<T> => {
  const queuedCount = queuedCounts.get(agent_id) ?? 0;
  if (queuedCount >= MAX_QUEUED) {
    throw new AppError("too_many_requests", "The agent sends its context too often.", { detail: "Try again later." });
  }
  queuedCounts.set(agent_id, queuedCount + 1);
  try {
    return await runInOrder(work);
  } finally {
    const remainingCount = (queuedCounts.get(agent_id) ?? 1) - 1;
    if (remainingCount === 0) queuedCounts.delete(agent_id);
    else queuedCounts.set(agent_id, remainingCount);
  }
};

/** `names` masks names and paths only if all of the name is a secret: a tool with a changed name cannot be called. */
type Masks = { readonly texts: SecretMask; readonly names: SecretMask };

/** Models read the context, like the results of tools: neither may contain secrets of the workspace's owner. */
const loadMasks = async (ctx: ApiContext, agent_id: string): Promise<Masks> => {
  const agent = await findAgentById(ctx.store, agent_id);
  if (!agent) throw notFound();
  const { owner_id, workspace_id } = agent;
  const secrets = await loadKnownSecrets(ctx, { chat_id: "", owner_id, workspace_id });
  return { texts: new SecretMask(secrets), names: new SecretMask(secrets, { whole: true }) };
};

const maskResource = async (resource: StoredResource, { texts, names }: Masks): Promise<StoredResource> => {
  const { source, error, body, skill_name, skill_description, tools } = resource;
  const maskedTools: NonNullable<StoredResource["tools"]>[number][] = [];
  for (const { name, description, input_schema } of tools ?? []) {
    maskedTools.push({
      name: names.text(name),
      description: await texts.longText(description),
      input_schema: await maskSchema(input_schema, { texts, names }),
    });
  }
  return {
    ...resource,
    source: names.text(source),
    error: texts.text(error),
    ...(body === undefined ? {} : { body: await texts.longText(body) }),
    ...(skill_name === undefined ? {} : { skill_name: names.text(skill_name) }),
    ...(skill_description === undefined ? {} : { skill_description: texts.text(skill_description) }),
    ...(tools === undefined ? {} : { tools: maskedTools }),
  };
};

/** Argument names are the keys of `properties` and the items of `required`. */
const maskSchema = async (schema: unknown, masks: Masks): Promise<Record<string, unknown>> => {
  let charsUntilPause = CHARS_BETWEEN_PAUSES;
  const maskText = async (mask: SecretMask, text: string): Promise<string> => {
    charsUntilPause -= text.length + 1;
    if (charsUntilPause < 0) {
      charsUntilPause = CHARS_BETWEEN_PAUSES;
      await nextTurn();
    }
    return mask.text(text);
  };
  const maskDeep = async (value: unknown, mask: SecretMask): Promise<unknown> => {
    if (typeof value === "string") return maskText(mask, value);
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) {
      const list: unknown[] = [];
      for (const item of value) list.push(await maskDeep(item, mask));
      return list;
    }
    const members: [string, unknown][] = [];
    for (const [name, item] of Object.entries(value)) {
      const inner = await maskDeep(item, name === "required" ? masks.names : masks.texts);
      members.push([await maskText(masks.names, name), inner]);
    }
    return Object.fromEntries(members);
  };
  return (await maskDeep(schema, masks.texts)) as Record<string, unknown>;
};

const toResources = ({ resources }: PushContextStateRequest): StoredResource[] => {
  if (resources.length > MAX.resources) throw invalidField("resources", `must be at most ${MAX.resources}`);
  let total = 0;
  return resources.map((resource) => {
    const converted = toResource(resource);
    total += (converted.body?.length ?? 0) + (converted.tools ? JSON.stringify(converted.tools).length : 0);
    if (total > MAX.total) throw invalid(`The resources have more than ${MAX.total} bytes.`);
    return converted;
  });
};

const KINDS = { instructionFile: "instruction_file", skill: "skill", mcpConfig: "mcp_config", mcpServer: "mcp_server" };

const toResource = ({ source, sourcePath, sizeBytes, status, error, body }: ContextResource): StoredResource => {
  if (body.case === undefined) throw invalidField("resources", "need a body that says what they are");
  const statusName = toWord(RESOURCE_STATUSES, status, 1, "status");
  return {
    kind: KINDS[body.case] as StoredResource["kind"],
    status: isTruncated(statusName, body) ? "ok" : statusName,
    source: (body.case === "mcpServer" ? body.value.serverName || source : sourcePath || source).slice(
      0,
      MAX.shortTextChars,
    ),
    size_bytes: toCount(sizeBytes),
    error: error.slice(0, MAX.shortTextChars),
    ...(statusName === "ok" || isTruncated(statusName, body) ? toBody(body) : {}),
    ...(isTruncated(statusName, body) ? { truncated: true as const } : {}),
  };
};

/** Slipway's daemon sends the beginning of an instruction file that is too long, and that part is used; other agents send nothing. */
const isTruncated = (status: string, body: ContextResource["body"]): boolean =>
  status === "oversize" && body.case === "instructionFile" && body.value.content.byteLength > 0;

const toBody = (body: ContextResource["body"]): Partial<StoredResource> => {
  switch (body.case) {
    case "instructionFile":
      return { body: decodeText(body.value.content) };
    case "skill":
      return {
        body: decodeText(body.value.meta),
        skill_name: body.value.name.slice(0, MAX.shortTextChars),
        skill_description: body.value.description.slice(0, MAX.shortTextChars),
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
