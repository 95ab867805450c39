// Models that chats can use: managed by site owners, readable by everyone who can use them.
import { t } from "elysia";
import type { ModelConfigRow, ModelProviderRow } from "#actors/models/model-settings.ts";
import { toRfc3339 } from "#base/clock.ts";
import { AppError, invalidField } from "#base/errors.ts";
import { checkModelAdmin, isOwner } from "#domain/access.ts";
import { checkNewDefault, findNextDefault, shouldBecomeDefault } from "#domain/chats/default-model.ts";
import { checkNumbers, parseKind, parseName } from "#domain/chats/model-input.ts";
import { CreateModelConfig, listAllowedEfforts, ModelConfig, UpdateModelConfig } from "#schema/chats/model-config.ts";
import { findPrice } from "#src/llm/prices.ts";
import * as setting from "../../audit/setting-targets.ts";
import * as target from "../../audit/targets.ts";
import type { ApiContext } from "../../context.ts";
import { callers } from "../../http/caller.ts";
import { operation } from "../../http/operation.ts";
import { fails, NoContent } from "../../http/responses.ts";
import { routes } from "../../http/routes.ts";

const tags = ["Models"];
const params = t.Object({
  model_config: t.String({ format: "uuid", description: "The ID of the model configuration." }),
});
const DEFAULT_CONTEXT_LIMIT = 128_000;

const presentModel = (row: ModelConfigRow, { provider }: Pick<ModelProviderRow, "provider">): ModelConfig => {
  const { deleted: _, compression_threshold, ...fields } = row;
  const price = findPrice(provider, row.model, row.model_config.cost);
  return {
    ...fields,
    provider,
    ...(compression_threshold === null ? {} : { compression_threshold }),
    reasoning_efforts: listAllowedEfforts(row.model_config),
    ...(price ? { price } : {}),
    created_at: toRfc3339(row.created_at),
    updated_at: toRfc3339(row.updated_at),
  };
};

/** Returns the provider of a new model, by ID or as the only one of its kind. Rejects with 400 or 412. */
const findProvider = async (
  ctx: ApiContext,
  { provider, provider_id }: CreateModelConfig,
): Promise<ModelProviderRow> => {
  const { providers } = await ctx.modelSettings.list();
  if (provider_id === undefined && provider === undefined) throw invalidField("provider", "is required");
  const kind = provider === undefined ? undefined : parseKind(provider);
  const matching = providers.filter(
    (candidate) =>
      (kind === undefined || candidate.provider === kind) &&
      (!provider_id || candidate.id === provider_id.toLowerCase()),
  );
  if (matching.length > 1) throw invalidField("provider_id", "is required: there are several providers of this kind");
  const [found] = matching;
  if (!found) throw new AppError("precondition_failed", "The provider is missing or disabled.");
  return found;
};

const deleteResponses = { 204: NoContent, ...fails(400, 401, 403, 404) };

export const modelConfigs = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/model-configs",
      async ({ caller }) => {
        const { providers, models } = await ctx.modelSettings.list();
        return models.flatMap((row) => {
          const provider = providers.find(({ id }) => id === row.provider_id);
          const isShown = provider && (isOwner(caller) || (row.enabled && provider.enabled));
          return isShown ? [presentModel(row, provider)] : [];
        });
      },
      {
        user: true,
        response: { 200: t.Array(ModelConfig), ...fails(401) },
        detail: operation({
          tags,
          operationId: "listModelConfigs",
          summary: "List models",
          description: "Returns models, oldest first. Only owners see disabled models.",
          access: "users",
          scope: "chat_config:read",
        }),
      },
    )
    .post(
      "/model-configs",
      async ({ caller, body, request, status }) => {
        checkModelAdmin(caller);
        const model = parseName("model", body.model);
        checkNumbers(body);
        const provider = await findProvider(ctx, body);
        const values = {
          provider_id: provider.id,
          model,
          display_name: parseName("display_name", body.display_name ?? model),
          enabled: body.enabled ?? true,
          context_limit: body.context_limit ?? DEFAULT_CONTEXT_LIMIT,
          compression_threshold: body.compression_threshold ?? null,
          model_config: body.model_config ?? {},
        };
        const asker = { user_id: caller.user_id, signal: request.signal };
        const is_default = await shouldBecomeDefault(ctx, values, body.is_default, asker);
        const created = await ctx.modelSettings.addModel({ ...values, is_default });
        return status(201, presentModel(created, provider));
      },
      {
        user: true,
        body: CreateModelConfig,
        response: { 201: ModelConfig, ...fails(400, 401, 403, 409, 412) },
        detail: operation({
          tags,
          operationId: "createModelConfig",
          summary: "Create a model",
          description:
            "Adds a model. Without `is_default`, the model becomes the default if no default exists yet and it responds to a test message. With `is_default`, returns 412 if it does not respond. Returns 412 if its provider is missing or disabled.",
          example: { provider: "openai-compat", model: "llama3.2", context_limit: 128_000 },
          access: "admins",
          outlivesGrant: true,
          scope: "chat_config:update",
        }),
      },
    )
    .patch(
      "/model-configs/:model_config",
      async ({ caller, params, body, request }) => {
        checkModelAdmin(caller);
        checkNumbers(body);
        const { model, display_name, ...rest } = body;
        const id = params.model_config.toLowerCase();
        const asker = { user_id: caller.user_id, signal: request.signal };
        if (rest.is_default === true) await checkNewDefault(ctx, id, asker);
        const patch = {
          ...rest,
          ...(model === undefined ? {} : { model: parseName("model", model) }),
          ...(display_name === undefined ? {} : { display_name: parseName("display_name", display_name) }),
        };
        const nextDefault =
          rest.enabled === false ? await findNextDefault(ctx, (one) => one.id === id, asker) : undefined;
        const changed = await ctx.modelSettings.changeModel(id, patch, nextDefault);
        const { providers } = await ctx.modelSettings.list();
        const provider = providers.find(({ id }) => id === changed.provider_id);
        return presentModel(changed, provider ?? { provider: "demo" });
      },
      {
        user: true,
        params,
        body: UpdateModelConfig,
        response: { 200: ModelConfig, ...fails(400, 401, 403, 404, 409, 412) },
        detail: operation({
          tags,
          operationId: "updateModelConfig",
          summary: "Update a model",
          description:
            "Chats that use the model continue with the updated model, or with the default while it is disabled. A model becomes the default only if it responds to a test message (412). If you disable the default, the oldest enabled model that responds becomes the default.",
          audit: target.writes(setting.modelConfig),
          example: { display_name: "Llama" },
          access: "admins",
          outlivesGrant: true,
          scope: "chat_config:update",
        }),
      },
    )
    .delete(
      "/model-configs/:model_config",
      async ({ caller, params, request, set }) => {
        checkModelAdmin(caller);
        const id = params.model_config.toLowerCase();
        const asker = { user_id: caller.user_id, signal: request.signal };
        await ctx.modelSettings.removeModel(id, await findNextDefault(ctx, (one) => one.id === id, asker));
        set.status = 204;
      },
      {
        user: true,
        params,
        response: deleteResponses,
        detail: operation({
          tags,
          operationId: "deleteModelConfig",
          summary: "Delete a model",
          description:
            "Chats that use the model continue with the default. If you delete the default, the oldest enabled model that responds to a test message becomes the default; if none responds, there is no default.",
          audit: target.deletes(setting.modelConfig),
          access: "admins",
          scope: "chat_config:update",
          outlivesGrant: true,
        }),
      },
    );
