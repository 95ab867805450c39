// Model providers: URL and API key. The key can be set but never read. For site owners only.
import { t } from "elysia";
import type { ModelProviderRow } from "#actors/models/model-settings.ts";
import { toRfc3339 } from "#base/clock.ts";
import { checkModelAdmin } from "#domain/access.ts";
import { findNextDefault } from "#domain/chats/default-model.ts";
import { parseBaseUrl, parseKey, parseKind, parseName } from "#domain/chats/model-input.ts";
import { CreateModelProvider, ModelProvider, UpdateModelProvider } from "#schema/chats/model-provider.ts";
import { requiresBaseUrl } from "#src/llm/adapters.ts";
import * as setting from "../../audit/setting-targets.ts";
import * as target from "../../audit/targets.ts";
import type { ApiContext } from "../../context.ts";
import { callers } from "../../http/caller.ts";
import { operation } from "../../http/operation.ts";
import { fails, NoContent } from "../../http/responses.ts";
import { routes } from "../../http/routes.ts";

const tags = ["Models"];
const params = t.Object({ provider: t.String({ format: "uuid", description: "The ID of the provider." }) });

const presentProvider = ({ sealed_api_key, deleted: _, ...row }: ModelProviderRow): ModelProvider => ({
  ...row,
  has_api_key: sealed_api_key !== "",
  created_at: toRfc3339(row.created_at),
  updated_at: toRfc3339(row.updated_at),
});

export const modelProviders = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/providers",
      async ({ caller }) => {
        checkModelAdmin(caller);
        return (await ctx.modelSettings.list()).providers.map(presentProvider);
      },
      {
        user: true,
        response: { 200: t.Array(ModelProvider), ...fails(401, 403) },
        detail: operation({
          tags,
          operationId: "listModelProviders",
          summary: "List model providers",
          description: "Returns providers, oldest first. Available to owners.",
          access: "admins",
          scope: "chat_config:read",
        }),
      },
    )
    .post(
      "/providers",
      async ({ caller, body, status }) => {
        checkModelAdmin(caller);
        const provider = parseKind(body.provider);
        const created = await ctx.modelSettings.addProvider({
          provider,
          display_name: parseName("display_name", body.display_name ?? provider),
          base_url: parseBaseUrl(body.base_url ?? "", requiresBaseUrl(provider)),
          api_key: parseKey(body.api_key ?? ""),
          enabled: body.enabled ?? true,
        });
        return status(201, presentProvider(created));
      },
      {
        user: true,
        body: CreateModelProvider,
        response: { 201: ModelProvider, ...fails(400, 401, 403, 409) },
        detail: operation({
          tags,
          operationId: "createModelProvider",
          summary: "Create a model provider",
          description:
            "Adds a provider of the kind anthropic, openai, google, or openai-compat for any server with an OpenAI-compatible API.",
          example: { provider: "openai-compat", base_url: "http://127.0.0.1:11434/v1" },
          access: "admins",
          outlivesGrant: true,
          scope: "chat_config:update",
        }),
      },
    )
    .patch(
      "/providers/:provider",
      async ({ caller, params, body, request }) => {
        checkModelAdmin(caller);
        const id = params.provider.toLowerCase();
        const { display_name, base_url, api_key, enabled } = body;
        const kind = (await ctx.modelSettings.list()).providers.find((one) => one.id === id)?.provider ?? "demo";
        const patch = {
          ...(display_name === undefined ? {} : { display_name: parseName("display_name", display_name) }),
          ...(base_url === undefined ? {} : { base_url: parseBaseUrl(base_url, requiresBaseUrl(kind)) }),
          ...(api_key === undefined ? {} : { api_key: parseKey(api_key) }),
          ...(enabled === undefined ? {} : { enabled }),
        };
        const asker = { user_id: caller.user_id, signal: request.signal };
        const nextDefault =
          enabled === false ? await findNextDefault(ctx, (one) => one.provider_id === id, asker) : undefined;
        const changed = await ctx.modelSettings.changeProvider(id, patch, nextDefault);
        return presentProvider(changed);
      },
      {
        user: true,
        params,
        body: UpdateModelProvider,
        response: { 200: ModelProvider, ...fails(400, 401, 403, 404, 409) },
        detail: operation({
          tags,
          operationId: "updateModelProvider",
          summary: "Update a model provider",
          description: "Without `api_key`, the key is kept. If you change the base URL, you must send the key again.",
          audit: target.writes(setting.modelProvider),
          example: { display_name: "Ollama" },
          access: "admins",
          outlivesGrant: true,
          scope: "chat_config:update",
        }),
      },
    )
    .delete(
      "/providers/:provider",
      async ({ caller, params, request, set }) => {
        checkModelAdmin(caller);
        const id = params.provider.toLowerCase();
        const asker = { user_id: caller.user_id, signal: request.signal };
        await ctx.modelSettings.removeProvider(id, await findNextDefault(ctx, (one) => one.provider_id === id, asker));
        set.status = 204;
      },
      {
        user: true,
        params,
        response: { 204: NoContent, ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "deleteModelProvider",
          summary: "Delete a model provider",
          description:
            "Deletes a provider and its models. If the default is among them, another model becomes the default, as when a model is deleted.",
          audit: target.deletes(setting.modelProvider),
          access: "admins",
          scope: "chat_config:update",
          outlivesGrant: true,
        }),
      },
    );
