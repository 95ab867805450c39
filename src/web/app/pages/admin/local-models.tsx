// Adds a first model in three steps: choose a server found on this machine, choose a model, test it.
import { useSignal } from "@preact/signals";
import { formatSize } from "#base/format-size.ts";
import type { LocalModelServer } from "#schema/administration/local-models.ts";
import { call } from "../../data/api.ts";
import { Button } from "../../parts/button.tsx";
import { setTo } from "../../parts/handlers.ts";
import { Icon } from "../../parts/icon.tsx";
import { testModel } from "./model-table.tsx";

type Model = LocalModelServer["models"][number];

const formatFacts = ({ size_bytes, parameters, context_limit, tools }: Model): string =>
  [
    size_bytes !== null && formatSize(size_bytes),
    parameters,
    tools === true && "tools",
    context_limit !== null && `${Math.round(context_limit / 1024)}k context`,
  ]
    .filter(Boolean)
    .join(", ");

/** Leaves out servers that are set up already. */
export const listUsableServers = (servers: readonly LocalModelServer[]): readonly LocalModelServer[] =>
  servers.filter(({ provider_id, models }) => provider_id === null && models.length > 0);

type LocalModelsProps = { readonly server: LocalModelServer; readonly reload: () => Promise<void> };

export const LocalModels = ({ server, reload }: LocalModelsProps) => {
  const preferred = server.models.find(({ tools }) => tools) ?? server.models[0];
  const chosenModel = useSignal(preferred?.model ?? "");
  const version = server.version ? ` ${server.version}` : "";
  const addModel = async (): Promise<void> => {
    const model = server.models.find((one) => one.model === chosenModel.value);
    const provider = await call("POST /chats/providers", {
      body: { provider: "openai-compat", display_name: server.name, base_url: server.base_url, enabled: true },
    });
    const context_limit = model?.context_limit ?? undefined;
    const created = await call("POST /chats/model-configs", {
      body: { provider_id: provider.id, model: chosenModel.value, ...(context_limit ? { context_limit } : {}) },
    });
    void testModel(created);
    await reload();
  };
  return (
    <section class="panel" aria-label={`${server.name} on this machine`}>
      <header>
        <h2>{server.name} on this machine</h2>
      </header>
      <div class="body">
        <ol class="wizard">
          <li>
            <Icon name="check" />
            Find
          </li>
          <li aria-current="step">
            <span class="count">2</span>
            Choose
          </li>
          <li>
            <span class="count">3</span>
            Test
          </li>
        </ol>
        <p>
          {server.name}
          {version} runs at <span class="mono">{server.base_url}</span>,{" "}
          {server.models.length === 1 ? "with 1 model" : `with ${server.models.length} models`}. No data leaves this
          machine.
        </p>
        <fieldset class="cards">
          <legend class="vh">Model</legend>
          {server.models.slice(0, 12).map((model) => (
            <label key={model.model} class="pick">
              <input
                type="radio"
                name={server.base_url}
                checked={model.model === chosenModel.value}
                onChange={setTo(chosenModel, model.model)}
              />
              <span class="art" aria-hidden="true">
                <Icon name="spark" />
              </span>
              <span class="mono clip">{model.model}</span>
              <p class="small mut">
                {formatFacts(model)}
                {model.tools === false && ". No tool support: it can answer questions but not work in a workspace."}
              </p>
            </label>
          ))}
        </fieldset>
      </div>
      <footer>
        <Button look="primary" onPress={addModel}>
          Add and test
        </Button>
      </footer>
    </section>
  );
};
