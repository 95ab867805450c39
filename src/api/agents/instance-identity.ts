// Signs in agents that have no token with the instance identity document of their cloud (facts/platform 8.3, rules II-1 to II-7). Open to
// anonymous callers, because the signature is the credential. Served under the specification's paths and the paths that upstream agents
// use.
import { AppError, conflict } from "#base/errors.ts";
import { sha256 } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { listAgentsOfInstance } from "#db/agents/agents.ts";
import { findAgentById } from "#domain/agents/find.ts";
import { makeAgentToken } from "#domain/agents/token-renewal.ts";
import { AgentSession, CloudAIdentity, CloudBIdentity, CloudCIdentity } from "#schema/agents/instance-identity.ts";
import { IdentityError, IdentityFiles } from "#src/identity/identity.ts";
import type { ApiContext } from "../context.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const DESCRIPTION =
  "Returns 404 if no agent of a running workspace has the instance ID, and 409 if several have it and `agent_name` doesn't select one. Repeated calls return the same token, which replaces the token that the build issued.";

const toRouteOptions = (cloud: string, example: Record<string, string>) => ({
  response: { 200: AgentSession, ...fails(400, 401, 404, 409, 415, 503) },
  detail: operation({
    reads: "public",
    access: "credentials",
    tags: ["Agent daemon"],
    operationId: `signInAgentBy${cloud
      .split("-")
      .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
      .join("")}`,
    summary: `Sign in with an instance identity (${cloud})`,
    description: DESCRIPTION,
    example,
    security: [],
  }),
});

export const instanceIdentity = (ctx: ApiContext) => {
  const files = new IdentityFiles(ctx.config.identity_certificates, ctx.clock);
  const app = routes();
  for (const cloud of ["cloud-a", "aws"]) {
    const path = `/${cloud}-instance-identity`;
    app.post(
      path,
      ({ body }) =>
        signIn(ctx, "a", body.agent_name, async () => {
          // This library and those of the other clouds are imported lazily, because they would slow down every startup.
          const { verifyAwsIdentity } = await import("#src/identity/aws.ts");
          return verifyAwsIdentity(files, body, ctx.clock.now());
        }),
      {
        ...toRouteOptions(cloud, { document: "as the cloud gave it", signature: "as the cloud gave it" }),
        body: CloudAIdentity,
      },
    );
  }
  for (const cloud of ["cloud-b", "azure"]) {
    const path = `/${cloud}-instance-identity`;
    app.post(
      path,
      ({ body }) =>
        signIn(ctx, "b", body.agent_name, async () => {
          const { verifyAzureIdentity } = await import("#src/identity/azure.ts");
          return verifyAzureIdentity(files, body.signature, ctx.clock.now());
        }),
      { ...toRouteOptions(cloud, { encoding: "pkcs7", signature: "as the cloud gave it" }), body: CloudBIdentity },
    );
  }
  for (const cloud of ["cloud-c", "google"]) {
    const path = `/${cloud}-instance-identity`;
    app.post(
      path,
      ({ body }) =>
        signIn(ctx, "c", body.agent_name, async () => {
          const { verifyGoogleIdentity } = await import("#src/identity/google.ts");
          return verifyGoogleIdentity(files, body.json_web_token, { now: ctx.clock.now(), accessUrl: ctx.accessUrl });
        }),
      { ...toRouteOptions(cloud, { json_web_token: "as the cloud gave it" }), body: CloudCIdentity },
    );
  }
  return app;
};

const signIn = async (
  ctx: ApiContext,
  cloud: "a" | "b" | "c",
  agent_name: string | undefined,
  verify: () => Promise<string>,
): Promise<{ session_token: string }> => {
  const instance_id = await verify().catch((error: unknown) => {
    // A forged message can make a parser throw anything; all of it is a rejection.
    if (!(error instanceof IdentityError)) log("identity").debug("a cloud-{cloud} identity: {error}", { cloud, error });
    const detail = error instanceof IdentityError ? `${error.message}.` : "It is malformed.";
    throw new AppError("unauthenticated", `The cloud-${cloud} instance identity is not valid.`, { detail });
  });
  const agent_id = await findAgent(ctx, instance_id, agent_name);
  const agent = await findAgentById(ctx.store, agent_id);
  const session_token = makeAgentToken(ctx, agent_id, agent?.token_generation ?? 0);
  await ctx.agents.ask(agent_id, "signIn", { token_hash: sha256(session_token) });
  return { session_token };
};

const findAgent = async ({ store }: ApiContext, instance_id: string, name: string | undefined): Promise<string> => {
  const candidates = await store.all(listAgentsOfInstance({ instance_id }));
  const matching = name ? candidates.filter((agent) => agent.name === name) : candidates;
  const [first, ...others] = matching;
  const quotedId = JSON.stringify(instance_id);
  if (!first) {
    const agentDescription = name ? `agent named ${JSON.stringify(name)}` : "agent";
    throw new AppError("not_found", `No ${agentDescription} has the instance id ${quotedId}.`);
  }
  if (others.length === 0) return first.agent_id;
  const names = matching.map((agent) => agent.name).join(", ");
  throw conflict(`Several agents have the instance id ${quotedId}: ${names}. Specify one with agent_name.`);
};
