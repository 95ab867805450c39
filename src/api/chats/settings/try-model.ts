// Tests whether a model responds, when a site owner configures it.
import { t } from "elysia";
import { checkModelAdmin } from "#domain/access.ts";
import { tryModel } from "#domain/chats/try-model.ts";
import { tryProvider } from "#domain/chats/try-provider.ts";
import { TriedModel } from "#schema/chats/model-config.ts";
import { TriedProvider, TryModelProvider } from "#schema/chats/model-provider.ts";
import type { ApiContext } from "../../context.ts";
import { callers } from "../../http/caller.ts";
import { operation } from "../../http/operation.ts";
import { fails } from "../../http/responses.ts";
import { routes } from "../../http/routes.ts";

export const tryModelConfig = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .post(
      "/model-configs/:model_config/try",
      ({ caller, params, request }) => {
        checkModelAdmin(caller);
        return tryModel(ctx, params.model_config.toLowerCase(), caller.user_id, request.signal);
      },
      {
        user: true,
        params: t.Object({
          model_config: t.String({ format: "uuid", description: "The ID of the model configuration." }),
        }),
        response: { 200: TriedModel, ...fails(400, 401, 403, 404, 409) },
        detail: operation({
          tags: ["Models"],
          operationId: "tryModelConfig",
          summary: "Test a model",
          description:
            "Sends a test message and waits up to a minute for the response. The cost counts toward the caller.",
          access: "admins",
          scope: "chat_config:update",
        }),
      },
    )
    .post(
      "/providers/try",
      ({ caller, body, request }) => {
        checkModelAdmin(caller);
        return tryProvider(ctx, body, caller.user_id, request.signal);
      },
      {
        user: true,
        body: TryModelProvider,
        response: { 200: TriedProvider, ...fails(400, 401, 403, 404) },
        detail: operation({
          tags: ["Models"],
          operationId: "checkModelProvider",
          summary: "Test a model provider",
          description:
            "Requests the provider's list of models (10 seconds at most) and sends `model` a test message. Nothing is stored. The stored key is only sent to the stored URL.",
          access: "admins",
          scope: "chat_config:update",
          example: { provider: "openai-compat", base_url: "http://127.0.0.1:11434/v1" },
        }),
      },
    );
