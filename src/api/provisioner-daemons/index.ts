// External workers (`slipway provisioner`): the list, and the WebSocket over which they take jobs.
import { t } from "elysia";
import { AppError, invalidField } from "#base/errors.ts";
import { listProvisionerDaemons } from "#db/templates/provisioners.ts";
import { loadOrganization, loadWorkersOrganization, organizationPath } from "#domain/organizations/find.ts";
import { registerDaemon, requireName } from "#domain/provisioners/daemon.ts";
import { presentDaemon } from "#domain/provisioners/present.ts";
import { ProvisionerDaemon } from "#schema/templates/provisioner.ts";
import { parseTags, printTags, type Tags } from "#src/provisioners/external/tags.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, Upgraded } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { provisionerJobs } from "./jobs.ts";
import { workerKeys } from "./key.ts";
import { provisionerKeys } from "./keys.ts";
import { WorkerConnection } from "./worker-connection.ts";

const tags = ["Provisioners"];
const params = organizationPath;
const KINDS = ["local", "docker", "echo", "terraform"];

const shortText = (description: string, maxLength = 1_024) => t.Optional(t.String({ maxLength, description }));

const serveQuery = t.Object({
  name: t.String({
    minLength: 1,
    maxLength: 64,
    pattern: "^[a-zA-Z0-9]+(?:[-_.][a-zA-Z0-9]+)*$",
    description:
      "The name of the worker. A new connection with this name and the same key replaces the previous one. Returns 409 while a worker with another key has the name.",
    examples: ["builder-1"],
  }),
  tags: shortText(
    "The tags of the worker, such as `region=eu,gpu=yes`. If its key has tags, the worker can have no others.",
    4_096,
  ),
  provisioners: shortText("The provisioners that the worker supports, such as `local,docker`; default `local`."),
  places: shortText(
    "The locations of the worker's resources, such as `docker=<id of the engine>`. Other workers at the same location can take over.",
  ),
  version: shortText("The version of the worker's program.", 64),
  slots: t.Optional(
    t.Integer({ minimum: 1, maximum: 64, description: "The maximum number of concurrent jobs; default 1." }),
  ),
});

const parseTagQuery = (field: string, text: string | undefined): Record<string, string> => {
  const parsed = parseTags(text ?? "");
  if (!parsed) throw invalidField(field, "must be name=value pairs, separated by commas");
  return parsed;
};

/** Returns the worker's tags. If its key has tags, they limit the worker, and their values take precedence. */
const toWorkerTags = (announced: Tags, key: Tags): Record<string, string> => {
  const others = Object.keys(announced).filter((name) => !Object.hasOwn(key, name));
  if (Object.keys(key).length > 0 && others.length > 0) {
    const problem = `can only name tags of the worker's key, which has ${printTags(key)}, and not ${others.join(", ")}`;
    throw invalidField("tags", problem);
  }
  return { ...announced, ...key };
};

const parseKinds = (text = "local"): string[] => {
  const kinds = text.split(",").map((kind) => kind.trim());
  if (kinds.every((kind) => KINDS.includes(kind))) return [...new Set(kinds)];
  throw invalidField("provisioners", `must be some of ${KINDS.join(", ")}, separated by commas`);
};

export const provisionerDaemons = (ctx: ApiContext) =>
  routes({ prefix: "/organizations" })
    .use(callers)
    .use(workerKeys(ctx))
    .use(provisionerKeys(ctx))
    .use(provisionerJobs(ctx))
    .get(
      "/:organization/provisionerdaemons",
      async ({ caller, params }) => {
        const { id } = await loadOrganization(ctx.store, params.organization, caller);
        const rows = await ctx.store.all(listProvisionerDaemons({ organization_id: id }));
        return Promise.all(rows.map((row) => presentDaemon(ctx, row, caller)));
      },
      {
        user: true,
        params,
        response: { 200: t.Array(ProvisionerDaemon), ...fails(401, 404) },
        detail: operation({
          tags,
          operationId: "listProvisionerDaemons",
          summary: "List provisioner daemons",
          description: "Returns external workers, most recently seen first.",
          access: "members",
          scope: "provisioner_daemon:read",
        }),
      },
    )
    .get(
      "/:organization/provisionerdaemons/serve",
      async ({ key, params, query, request }) => {
        const { id: organization_id } = await loadWorkersOrganization(
          ctx.store,
          params.organization,
          key.organization_id,
        );
        const registration = {
          organization_id,
          key_id: key.id,
          name: query.name,
          tags: toWorkerTags(parseTagQuery("tags", query.tags), key.tags),
          provisioners: parseKinds(query.provisioners),
          version: query.version ?? "",
          slots: query.slots ?? 1,
        };
        const places = parseTagQuery("places", query.places);
        await requireName(ctx, registration);
        if (request.headers.get("upgrade")?.toLowerCase() !== "websocket") {
          throw new AppError("invalid", "This endpoint is a WebSocket: send an upgrade request.");
        }
        const id = await registerDaemon(ctx, registration);
        const connection = new WorkerConnection(ctx, { ...registration, id, places });
        return ctx.sockets.upgrade(request, connection, { who: key.id, owner: `workers of ${organization_id}` });
      },
      {
        worker: true,
        params,
        query: serveQuery,
        response: { 101: Upgraded, ...fails(400, 401, 404, 409, 503) },
        detail: operation({
          tags,
          operationId: "serveProvisionerDaemon",
          access: "credentials",
          summary: "Connect a provisioner daemon",
          description:
            "A WebSocket of JSON messages, for `slipway provisioner`. Send the provisioner key instead of a session token.",
        }),
      },
    );
