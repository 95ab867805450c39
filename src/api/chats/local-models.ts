// Detects model servers on this machine, for an owner who configures the first model.
import { checkModelAdmin } from "#domain/access.ts";
import { findLocalModelServers } from "#domain/administration/local-models.ts";
import { LocalModelServers } from "#schema/administration/local-models.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

export const localModels = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/providers/local",
      ({ caller }) => {
        checkModelAdmin(caller);
        return findLocalModelServers(ctx);
      },
      {
        user: true,
        response: { 200: LocalModelServers, ...fails(401, 403) },
        detail: operation({
          tags: ["Models"],
          operationId: "listLocalModelServers",
          summary: "List model servers on this machine",
          description:
            "Queries the addresses in the setting local_model_servers (Ollama, LM Studio, vLLM, llama.cpp) in parallel, with a timeout of 1.5 s per request.",
          access: "admins",
          scope: "chat_config:read",
        }),
      },
    );
