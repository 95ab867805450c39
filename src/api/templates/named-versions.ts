// Template versions by the names of their organization, template and version, as used by clients that push templates.
import { t } from "elysia";
import { notFound } from "#base/errors.ts";
import { findVersionBefore, findVersionByName, type VersionView } from "#db/templates/versions.ts";
import { organizationPath } from "#domain/organizations/find.ts";
import { presentVersion } from "#domain/template-versions/present.ts";
import { findTemplateNamed } from "#domain/templates/find.ts";
import { TemplateVersion } from "#schema/templates/template-version.ts";
import type { ApiContext } from "../context.ts";
import { callers, type UserCaller } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Templates"];

const namedVersion = t.Object({
  ...organizationPath.properties,
  name: t.String({ description: "The name of the template." }),
  version: t.String({ description: "The name of the version." }),
});

type VersionPath = { readonly organization: string; readonly name: string; readonly version: string };

/** Rejects with 404 for versions that do not exist or are not visible. */
const findVersionNamed = async (ctx: ApiContext, path: VersionPath, caller: UserCaller): Promise<VersionView> => {
  const { template } = await findTemplateNamed(ctx, path, caller);
  const version = await ctx.store.get(findVersionByName({ template_id: template.id, name: path.version }));
  if (!version) throw notFound();
  return version;
};

export const versionsByName = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:organization/templates/:name/versions/:version",
      async ({ caller, params }) => presentVersion(await findVersionNamed(ctx, params, caller), ctx),
      {
        user: true,
        params: namedVersion,
        response: { 200: TemplateVersion, ...fails(401, 404) },
        detail: operation({
          tags,
          operationId: "getOrganizationTemplateVersionByName",
          summary: "Get a template version by name",
          access: "members",
          scope: "template:read",
        }),
      },
    )
    .get(
      "/:organization/templates/:name/versions/:version/previous",
      async ({ caller, params }) => {
        const { version } = await findVersionNamed(ctx, params, caller);
        const previous = await ctx.store.get(findVersionBefore({ template_id: version.template_id, id: version.id }));
        if (!previous) throw notFound();
        return presentVersion(previous, ctx);
      },
      {
        user: true,
        params: namedVersion,
        response: { 200: TemplateVersion, ...fails(401, 404) },
        detail: operation({
          tags,
          operationId: "getPreviousTemplateVersion",
          summary: "Get the previous version of a template",
          description: "Returns 404 for the first version.",
          access: "members",
          scope: "template:read",
        }),
      },
    );
