// Routes of templates: listing, reading, creating, changing and deleting. Versions are in versions.ts.
import { t } from "elysia";
import type { TemplateView } from "#db/templates/templates.ts";
import { canHaveLocal, explainNoLocal } from "#domain/builds/local-rule.ts";
import { loadOrganization, organizationPath } from "#domain/organizations/find.ts";
import { BuildTimes } from "#domain/templates/build-times.ts";
import { changeTemplate, makeTemplate, removeTemplate, requireTemplateAdmin } from "#domain/templates/change.ts";
import { findTemplateNamed, loadManagedTemplate, loadTemplate, templatePath } from "#domain/templates/find.ts";
import { presentTemplate } from "#domain/templates/present.ts";
import { searchTemplates } from "#domain/templates/search.ts";
import { Generic } from "#schema/generic.ts";
import { Manifest } from "#schema/templates/manifest.ts";
import { CreateTemplate, PatchTemplate, Template } from "#schema/templates/template.ts";
import { TemplateExample } from "#schema/templates/template-version.ts";
import { EXAMPLES } from "#src/starter/examples.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { ANY_ID } from "../http/document/example-ids.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { templateAcl } from "./acl.ts";
import { templateDaus } from "./daus.ts";
import { versionsByName } from "./named-versions.ts";
import { templateVersionRoutes } from "./versions.ts";

const tags = ["Templates"];

const listOptions = {
  query: t.Object({
    q: t.Optional(
      t.String({
        maxLength: 1024,
        description:
          "A search query of words and `key:value` terms. Keys: name, exact_name, deprecated, organization, has-ai-task, author.",
      }),
    ),
  }),
  response: { 200: t.Array(Template), ...fails(400, 401, 404) },
};

export const templates = (ctx: ApiContext) => {
  const times = new BuildTimes(ctx.store, ctx.clock);
  const present = async (view: TemplateView): Promise<Template> =>
    presentTemplate(view, await times.get(view.template.id), ctx.config);
  return routes()
    .use(manifestSchema())
    .use(examples(ctx))
    .use(organizationTemplates(ctx, present))
    .use(templateById(ctx, present))
    .use(templateAcl(ctx))
    .use(templateVersionRoutes(ctx))
    .use(templateDaus(ctx));
};

type Present = (view: TemplateView) => Promise<Template>;

const MANIFEST_SCHEMA = JSON.stringify({ $schema: "http://json-schema.org/draft-07/schema#", ...Manifest }, null, 2);

const manifestSchema = () =>
  routes({ prefix: "/templates" }).get(
    "/schema",
    () => new Response(MANIFEST_SCHEMA, { headers: { "content-type": "application/json; charset=utf-8" } }),
    {
      response: { 200: t.Record(t.String(), t.Unknown(), { description: "The JSON Schema." }) },
      detail: operation({
        tags,
        operationId: "getTemplateSchema",
        access: "anyone",
        summary: "Get the JSON Schema of template.yaml",
        description: "Returns the format of template.yaml, for YAML editors. Doesn't require signing in.",
        security: [],
      }),
    },
  );

const examples = ({ config, provisioners }: ApiContext) =>
  routes({ prefix: "/templates" })
    .use(callers)
    .get(
      "/examples",
      async ({ caller }) => {
        const hasLocal = explainNoLocal(config) === undefined && canHaveLocal(config, caller.roles);
        const noDocker = await provisioners.get("docker")?.findProblem?.();
        return [...EXAMPLES]
          .filter(([, { provisioner }]) => provisioner !== "local" || hasLocal)
          .map(([id, { display_name, description, icon, provisioner, kind, markdown }]) => ({
            id,
            name: display_name,
            description,
            icon,
            provisioner,
            kind,
            // Terraform examples are always available: workers can run Terraform even if the server can't.
            unavailable: (provisioner === "docker" ? noDocker : undefined) ?? "",
            markdown,
          }));
      },
      {
        user: true,
        response: { 200: t.Array(TemplateExample), ...fails(401) },
        detail: operation({
          tags,
          operationId: "listTemplateExamples",
          summary: "List example templates",
          description:
            "Returns the built-in templates, without local ones where the caller can't have them. `unavailable` says why Docker workspaces can't start. To create a template version from one, send its ID as `example_id`.",
          access: "users",
          scope: "template:read",
        }),
      },
    );

const organizationTemplates = (ctx: ApiContext, present: Present) =>
  routes({ prefix: "/organizations" })
    .use(callers)
    .get(
      "/:organization/templates",
      async ({ caller, params, query }) => {
        const { id } = await loadOrganization(ctx.store, params.organization, caller);
        return Promise.all((await searchTemplates(ctx, caller, query.q ?? "", id)).map(present));
      },
      {
        ...listOptions,
        user: true,
        params: organizationPath,
        detail: operation({
          tags,
          operationId: "listOrganizationTemplates",
          summary: "List templates of an organization",
          access: "members",
          scope: "template:read",
        }),
      },
    )
    .get(
      "/:organization/templates/:name",
      async ({ caller, params }) => present(await findTemplateNamed(ctx, params, caller)),
      {
        user: true,
        params: t.Object({
          ...organizationPath.properties,
          name: t.String({ description: "The name of the template." }),
        }),
        response: { 200: Template, ...fails(401, 404) },
        detail: operation({
          tags,
          operationId: "getTemplateByName",
          summary: "Get a template by name",
          access: "members",
          scope: "template:read",
        }),
      },
    )
    .use(versionsByName(ctx))
    .post(
      "/:organization/templates",
      async ({ caller, params, body, status }) => {
        const organization = await loadOrganization(ctx.store, params.organization, caller);
        requireTemplateAdmin(caller, organization);
        const id = await makeTemplate(ctx, organization, caller.user_id, body);
        return status(201, await present(await loadTemplate(ctx, id, caller)));
      },
      {
        user: true,
        params: organizationPath,
        body: CreateTemplate,
        response: { 201: Template, ...fails(400, 401, 403, 404, 409, 412) },
        detail: operation({
          tags,
          operationId: "createTemplate",
          summary: "Create a template",
          description: "Creates a template from an imported template version that doesn't belong to a template yet.",
          example: { name: "hello", display_name: "Hello", template_version_id: ANY_ID },
          access: "organization_admins",
          outlivesGrant: true,
          scope: "template:create",
        }),
      },
    );

const templateById = (ctx: ApiContext, present: Present) =>
  routes({ prefix: "/templates" })
    .use(callers)
    .get(
      "",
      async ({ caller, query }) => Promise.all((await searchTemplates(ctx, caller, query.q ?? "")).map(present)),
      {
        ...listOptions,
        user: true,
        detail: operation({
          tags,
          operationId: "listTemplates",
          summary: "List templates",
          description: "Returns the templates that the caller can see, sorted by name.",
          access: "users",
          scope: "template:read",
        }),
      },
    )
    .get("/:template", async ({ caller, params }) => present(await loadTemplate(ctx, params.template, caller)), {
      user: true,
      params: templatePath,
      response: { 200: Template, ...fails(400, 401, 404) },
      detail: operation({
        tags,
        operationId: "getTemplate",
        summary: "Get a template",
        access: "members",
        scope: "template:read",
      }),
    })
    .patch(
      "/:template",
      async ({ caller, params, body }) => {
        const { template } = await loadManagedTemplate(ctx, params.template, caller);
        await changeTemplate(ctx, template, body);
        return present(await loadTemplate(ctx, template.id, caller));
      },
      {
        user: true,
        params: templatePath,
        body: PatchTemplate,
        response: { 200: Template, ...fails(400, 401, 403, 404, 409) },
        detail: operation({
          tags,
          operationId: "updateTemplate",
          summary: "Update a template",
          description: "Omitted fields are unchanged.",
          example: { display_name: "Hello", description: "Says hello.", default_ttl_ms: 28_800_000 },
          audit: target.writes(target.template),
          access: "organization_admins",
          outlivesGrant: true,
          scope: "template:update",
        }),
      },
    )
    .delete(
      "/:template",
      async ({ caller, params }) => {
        const { template } = await loadManagedTemplate(ctx, params.template, caller);
        await removeTemplate(ctx, template);
        return { message: "The template has been deleted." };
      },
      {
        user: true,
        params: templatePath,
        response: { 200: Generic, ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "deleteTemplate",
          summary: "Delete a template",
          description: "Returns 400 while the template has workspaces.",
          audit: target.deletes(target.template),
          access: "organization_admins",
          scope: "template:delete",
          outlivesGrant: true,
        }),
      },
    );
