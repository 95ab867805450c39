// Every resource of the API, one line each. A new resource is added here and nowhere else.
import { Elysia } from "elysia";
import { agents } from "./agents/index.ts";
import { applications } from "./applications/index.ts";
import { audit } from "./audit/index.ts";
import { buildinfo } from "./buildinfo.ts";
import { builds } from "./builds/index.ts";
import { chats } from "./chats/index.ts";
import { modelOverrides } from "./chats/model-overrides.ts";
import type { ApiContext } from "./context.ts";
import { deployment } from "./deployment.ts";
import { externalAuth } from "./external-auth/index.ts";
import { files } from "./files.ts";
import { insights } from "./insights/index.ts";
import { organizations } from "./organizations/index.ts";
import { provisionerDaemons } from "./provisioner-daemons/index.ts";
import { derpMaps } from "./tailnet/derp-map.ts";
import { tailnet } from "./tailnet/tailnet.ts";
import { templateVersions } from "./template-versions/index.ts";
import { templates } from "./templates/index.ts";
import { users } from "./users/index.ts";
import { workspacesByOwner } from "./workspaces/by-owner.ts";
import { workspaces } from "./workspaces/index.ts";

/** All routes under /api/v2. */
export const api = (ctx: ApiContext) =>
  new Elysia({ prefix: "/api/v2" })
    .use(buildinfo(ctx))
    .use(deployment(ctx))
    .use(organizations(ctx))
    .use(provisionerDaemons(ctx))
    .use(agents(ctx))
    .use(derpMaps(ctx))
    .use(tailnet(ctx))
    .use(applications(ctx))
    .use(users(ctx))
    .use(externalAuth(ctx))
    .use(files(ctx))
    .use(insights(ctx))
    .use(audit(ctx))
    .use(templates(ctx))
    .use(templateVersions(ctx))
    .use(workspacesByOwner(ctx))
    .use(workspaces(ctx))
    .use(builds(ctx))
    .use(modelOverrides(ctx))
    .use(chats(ctx));
