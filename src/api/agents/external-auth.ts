// `GET me/external-auth`: returns the workspace owner's access token for a provider, for git and other programs in the workspace
// (facts/platform 3.6, rules EA-10, EA-12 to EA-14). With `listen`, waits until the owner has linked an account. Rejects agents that may
// not read the owner's data.
import { t } from "elysia";
import { toOptionalRfc3339 } from "#base/clock.ts";
import { AppError, forbidden, invalid, notFound } from "#base/errors.ts";
import { AgentExternalAuth } from "#schema/users/external-auth.ts";
import { type Provider, toGitCredential } from "#src/git/provider.ts";
import type { ApiContext } from "../context.ts";
import { type AgentCaller, callers } from "../http/caller.ts";
import { toHolder } from "../http/holders.ts";
import { operation } from "../http/operation.ts";
import { flagQuery, parseFlag } from "../http/query.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

export const agentExternalAuth = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/me/external-auth",
      async ({ caller, query, request }) => {
        if (caller.api_key_scope === "no_user_data") {
          throw forbidden("This agent may not read personal data of the workspace's owner.");
        }
        const listen = parseFlag(query.listen);
        const provider = resolveProvider(ctx, query);
        if (!listen) return (await loadToken(ctx, caller, provider)) ?? toUnlinked(ctx, provider);
        const wait = new LinkWait(ctx, caller, provider.id, request);
        try {
          // The subscription must exist before this read, or a link made in between would be lost.
          const token = await loadToken(ctx, caller, provider);
          if (token) return token;
          ctx.requests.exempt(request);
          if (request.signal.aborted) wait.end();
          request.signal.addEventListener("abort", () => wait.end(), { once: true });
          while (await wait.next()) {
            const token = await loadToken(ctx, caller, provider);
            if (token) return token;
          }
          throw new AppError("overloaded", "Timed out; no account was linked.");
        } finally {
          wait.end();
        }
      },
      {
        agent: true,
        query: t.Object({
          match: t.Optional(
            t.String({ description: "A URL at the provider, such as one that Git asks a password for." }),
          ),
          id: t.Optional(t.String({ description: "The ID of the provider. Not needed with `match`." })),
          listen: flagQuery("Wait until the owner has linked an account."),
        }),
        response: { 200: AgentExternalAuth, ...fails(400, 401, 403, 404, 503) },
        detail: operation({
          tags: ["Agents"],
          operationId: "getAgentExternalAuth",
          access: "agent",
          summary: "Get the owner's external account token",
          description:
            "Returns the owner's token for a provider, refreshed if it is about to expire. If no account is linked, only `url` is set: the page where the owner can link one. `match` and `id` can both be set if they refer to the same provider.",
          placement: "token",
        }),
      },
    );

/** Returns the provider that `match` and `id` name. Rejects with 400 if both are missing or if they disagree (facts/platform 10.1). */
const resolveProvider = ({ links }: ApiContext, { match = "", id = "" }: { match?: string; id?: string }): Provider => {
  if (match === "" && id === "") {
    throw invalid("Query parameters have invalid values.", [
      { field: "match", detail: "is required unless id is set" },
    ]);
  }
  const matched = match === "" ? undefined : links.providerFor(match);
  if (id === "") {
    if (matched) return matched;
    throw links.providerWithTls(match) ? makeTlsError(match) : notFound();
  }
  const provider = links.provider(id);
  if (match === "" || matched === provider) return provider;
  throw invalid("Query parameters have invalid values.", [
    { field: "match", detail: "names a different provider than id" },
  ]);
};

/** Only this 404 has a detail, which `gitaskpass` prints. */
const makeTlsError = (url: string): AppError =>
  new AppError("not_found", `No linked account is used for ${url}, because its host is configured with https.`, {
    detail: `Change the remote to https: git remote set-url origin ${url.replace(/^http:/i, "https:")}`,
  });

const loadToken = async (
  { links }: ApiContext,
  { owner_id }: AgentCaller,
  provider: Provider,
): Promise<AgentExternalAuth | undefined> => {
  const link = await links.getLiveToken(owner_id, provider);
  if (!link) return undefined;
  const { access_token, token_extra, expires_at } = link;
  const credential = toGitCredential(provider.type, access_token);
  return {
    access_token,
    ...credential,
    type: provider.type,
    url: "",
    expires_at: toOptionalRfc3339(expires_at),
    token_extra,
  };
};

const toUnlinked = ({ accessUrl }: ApiContext, { id }: Provider): AgentExternalAuth => ({
  access_token: "",
  username: "",
  password: "",
  type: "",
  token_extra: {},
  url: new URL(`/external-auth/${id}`, accessUrl).href,
});

/** Waits until an owner links an account at a provider. The wait ends with the agent's build, the caller's connection or the server. */
class LinkWait {
  #hasNews = false;
  #isOver = false;
  #wake: (() => void) | undefined;
  readonly #cleanups: (() => void)[];

  constructor({ topics, streams }: ApiContext, caller: AgentCaller, provider: string, request: Request) {
    const { agent_id, owner_id } = caller;
    const onLinkChanged = (): void => {
      this.#hasNews = true;
      this.#wake?.();
    };
    this.#cleanups = [
      // First, because it can throw, and nothing else needs cleanup yet.
      streams.add({ end: () => this.end(), ping: () => {}, isPoll: true }, toHolder(caller), request),
      topics.subscribe("external_auth", owner_id, ({ provider_id }) => {
        if (provider_id === provider) onLinkChanged();
      }),
      topics.subscribe("missed", "", onLinkChanged),
      topics.subscribe("agent_gone", agent_id, () => this.end()),
      topics.subscribe("agent_token_renewed", agent_id, () => this.end()),
    ];
  }

  /** Returns true after the next link, or when one may have been missed; false when the wait has ended. */
  async next(): Promise<boolean> {
    while (!this.#hasNews && !this.#isOver) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.#hasNews = false;
    return !this.#isOver;
  }

  end(): void {
    this.#isOver = true;
    for (const cleanUp of this.#cleanups.splice(0)) cleanUp();
    this.#wake?.();
  }
}
