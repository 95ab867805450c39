// Agents without a token sign in with what their cloud says of the machine they run on (facts/platform 8.3, rules II-1 to II-7). Open to
// strangers: the signature is the credential. Served under the specification's paths and those of genuine agents.
import { AppError, conflict } from "#base/errors.ts";
import { sha256 } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { listAgentsOfInstance } from "#db/agents/instances.ts";
import { AgentSession, CloudAIdentity, CloudBIdentity, CloudCIdentity } from "#schema/agents/instance-identity.ts";
import { IdentityError, IdentityFiles } from "#src/identity/identity.ts";
import type { ApiContext } from "../context.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const ABOUT =
  "404 if no agent of a running workspace has the instance id, 409 if several have it and `agent_name` doesn't select one. Returns the same token each time; it replaces the one that the build issued.";

const documented = (cloud: string, example: Record<string, string>) => ({
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
    description: ABOUT,
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
          const { verifyCloudA } = await import("#src/identity/aws.ts");
          return verifyCloudA(files, body, ctx.clock.now());
        }),
      {
        ...documented(cloud, { document: "as the cloud gave it", signature: "as the cloud gave it" }),
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
          // Read when it is needed: these libraries would cost every start.
          const { verifyCloudB } = await import("#src/identity/azure.ts");
          return verifyCloudB(files, body.signature, ctx.clock.now());
        }),
      { ...documented(cloud, { encoding: "pkcs7", signature: "as the cloud gave it" }), body: CloudBIdentity },
    );
  }
  for (const cloud of ["cloud-c", "google"]) {
    const path = `/${cloud}-instance-identity`;
    app.post(
      path,
      ({ body }) =>
        signIn(ctx, "c", body.agent_name, async () => {
          const { verifyCloudC } = await import("#src/identity/google.ts");
          return verifyCloudC(files, body.json_web_token, ctx.clock.now());
        }),
      { ...documented(cloud, { json_web_token: "as the cloud gave it" }), body: CloudCIdentity },
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
    // What a parser throws at a forged message is a refusal like any other.
    if (!(error instanceof IdentityError)) log("identity").debug("a cloud-{cloud} identity: {error}", { cloud, error });
    const detail = error instanceof IdentityError ? `${error.message}.` : "It is malformed.";
    throw new AppError("unauthenticated", `The cloud-${cloud} instance identity is not valid.`, { detail });
  });
  const agent_id = await findAgent(ctx, instance_id, agent_name);
  const session_token = makeToken(ctx, agent_id);
  await ctx.agents.ask(agent_id, "signIn", { token_hash: sha256(session_token) });
  return { session_token };
};

const findAgent = async ({ store }: ApiContext, instance_id: string, name: string | undefined): Promise<string> => {
  const candidates = await store.all(listAgentsOfInstance({ instance_id }));
  const fitting = name ? candidates.filter((agent) => agent.name === name) : candidates;
  const [first, ...others] = fitting;
  const shown = JSON.stringify(instance_id);
  if (!first) {
    const which = name ? `agent named ${JSON.stringify(name)}` : "agent";
    throw new AppError("not_found", `No ${which} has the instance id ${shown}.`);
  }
  if (others.length === 0) return first.agent_id;
  const names = fitting.map((agent) => agent.name).join(", ");
  throw conflict(`Several agents have the instance id ${shown}: ${names}. Specify one with agent_name.`);
};

/**
 * The token of an agent that signs in this way; the one before it counts for a second more at most. Only its digest is stored, and yet it is the same each time: the programs of one
 * machine all sign in for themselves and must not sign each other out. It dies with its build like every agent token.
 */
const makeToken = ({ encryption }: ApiContext, agent_id: string): string =>
  encryption.deriveUuid(`agent_token:${agent_id}`);
