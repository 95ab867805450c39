// Searches for model servers on this machine at the addresses in the setting `local_model_servers`, so that a first model can be chosen
// instead of typed. Requests run concurrently with time and size limits; servers that do not respond as expected are left out.

import { parseJson } from "#base/json/read.ts";
import { Outbound } from "#base/outbound.ts";
import { trimEnd } from "#base/text/trim.ts";
import type { LocalModelServer, LocalModelServers } from "#schema/administration/local-models.ts";
import type { DomainContext } from "../context.ts";
import { parseModelList, parseOllamaModel, parseOllamaModels, readText } from "./local-model-answers.ts";

const REQUEST_TIMEOUT_MS = 1_500;
const MAX_BYTES = 1024 * 1024;
/** Maximum number of Ollama's models whose capabilities are queried. */
const MAX_DESCRIBED_MODELS = 20;
const LOOPBACK = ["127.0.0.0/8", "::1/128"];

type Deps = Pick<DomainContext, "clock" | "config" | "modelSettings">;
type FoundServer = Omit<LocalModelServer, "provider_id">;

export const findLocalModelServers = async (deps: Deps): Promise<LocalModelServers> => {
  const { config, clock, modelSettings } = deps;
  const limits = { timeout_ms: REQUEST_TIMEOUT_MS, max_bytes: MAX_BYTES };
  const outbound = new Outbound({ clock, allowed: [...LOOPBACK, ...config.allowed_private_networks], ...limits });
  const { providers } = await modelSettings.list();
  const found = await Promise.all(
    config.local_model_servers.map((at) => new ServerProbe(outbound, new URL(at)).probe()),
  );
  const servers = found
    .filter((one) => one !== undefined)
    .map((one) => ({
      ...one,
      provider_id: providers.find(({ base_url }) => base_url && isSameUrl(base_url, one.base_url))?.id ?? null,
    }));
  return { servers };
};

const isSameUrl = (one: string, other: string): boolean => {
  const normalizeUrl = (text: string): string => trimEnd(text, "/").replace("//localhost", "//127.0.0.1");
  return normalizeUrl(one) === normalizeUrl(other);
};

class ServerProbe {
  readonly #outbound: Outbound;
  readonly #url: URL;

  constructor(outbound: Outbound, at: URL) {
    this.#outbound = outbound;
    this.#url = at;
  }

  async probe(): Promise<FoundServer | undefined> {
    return (await this.#probeOllama()) ?? (await this.#probeCompatible());
  }

  async #probeOllama(): Promise<FoundServer | undefined> {
    const listed = parseOllamaModels(await this.#json("/api/tags"));
    if (!listed) return undefined;
    const version = readText(await this.#json("/api/version"), "version");
    const requested = listed.slice(0, MAX_DESCRIBED_MODELS).map(async (one) => {
      return parseOllamaModel(one, await this.#json("/api/show", { model: one.model }));
    });
    const models = [...(await Promise.all(requested)), ...listed.slice(MAX_DESCRIBED_MODELS)];
    return { kind: "ollama", name: "Ollama", version, base_url: this.#base(), models };
  }

  async #probeCompatible(): Promise<FoundServer | undefined> {
    const list = parseModelList(await this.#json("/v1/models"));
    if (!list) return undefined;
    const version = list.kind === "vllm" ? readText(await this.#json("/version"), "version") : "";
    return { kind: list.kind, name: list.name, version, base_url: this.#base(), models: list.models };
  }

  #base(): string {
    return new URL("/v1", this.#url).href;
  }

  /** Returns a 200 response with JSON; undefined for everything else. */
  async #json(path: string, body?: object): Promise<unknown> {
    const post = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    try {
      const { status, text } = await this.#outbound.fetch(new URL(path, this.#url), body ? post : {});
      return status === 200 ? parseJson(text) : undefined;
    } catch {
      return undefined;
    }
  }
}
