// Models available for new chats, by provider, and the reason when a provider is unavailable.
import { AvailableModels, listAllowedEfforts } from "#schema/chats/model-config.ts";
import { requiresKey } from "#src/llm/adapters.ts";
import { DEMO, DEMO_CONTEXT_LIMIT } from "#src/llm/demo.ts";
import type { ApiContext } from "../../context.ts";
import { callers } from "../../http/caller.ts";
import { operation } from "../../http/operation.ts";
import { fails } from "../../http/responses.ts";
import { routes } from "../../http/routes.ts";

/** The models of a fresh install. */
const DEMO_ONLY: AvailableModels = {
  providers: [
    {
      provider: "demo",
      display_name: "Demo",
      available: true,
      models: [
        {
          id: DEMO.id,
          provider: "demo",
          model: "demo",
          display_name: DEMO.display_name,
          is_default: true,
          context_limit: DEMO_CONTEXT_LIMIT,
          reasoning_efforts: [],
        },
      ],
    },
  ],
};

export const availableModels = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/models",
      async (): Promise<AvailableModels> => {
        const { providers, models } = await ctx.modelSettings.list();
        if (models.length === 0) return DEMO_ONLY;
        return {
          providers: providers
            .filter(({ enabled }) => enabled)
            .map(({ id, provider, display_name, sealed_api_key }) => {
              const available = !requiresKey(provider) || sealed_api_key !== "";
              return {
                provider,
                display_name,
                available,
                ...(available ? {} : { unavailable_reason: "missing_api_key" as const }),
                models: models
                  .filter((model) => model.provider_id === id && model.enabled)
                  .map((model) => ({
                    id: model.id,
                    provider,
                    model: model.model,
                    display_name: model.display_name,
                    is_default: model.is_default,
                    context_limit: model.context_limit,
                    reasoning_efforts: listAllowedEfforts(model.model_config),
                  })),
              };
            }),
        };
      },
      {
        user: true,
        response: { 200: AvailableModels, ...fails(401) },
        detail: operation({
          tags: ["Models"],
          operationId: "listAvailableModels",
          summary: "List available models",
          description:
            "Returns the models that chats can use, by provider. If no model is configured, returns the built-in demo model.",
          access: "users",
          scope: "chat_config:read",
        }),
      },
    );
