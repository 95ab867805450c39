// Decides who can see which reports, and for which templates (facts/platform 3.8). A caller without access gets 403 from every report.
import { forbidden, notFound } from "#base/errors.ts";
import { isUuid } from "#base/ids.ts";
import { findTemplate } from "#db/templates/templates.ts";
import { canViewInsights } from "#domain/access.ts";
import { invalidQuery } from "#domain/insights/zones.ts";
import type { ApiContext } from "../context.ts";
import type { UserCaller } from "../http/caller.ts";

const MAX_TEMPLATES = 500;

/** Query parameters that are credentials and not part of the report's query. */
const CREDENTIALS = ["service_session_token", "coder_session_token", "access_token"];

/** Rejects unknown parameters (facts/platform 3.1). */
export const rejectUnknownParameters = (request: Request, knownParameters: object): void => {
  for (const name of new URL(request.url).searchParams.keys()) {
    if (!(name in knownParameters) && !CREDENTIALS.includes(name))
      throw invalidQuery(name, "is not a parameter of this report");
  }
};

/** Returns the values of a parameter that is repeated or comma-separated. */
export const parseList = (request: Request, name: string): string[] =>
  new URL(request.url).searchParams
    .getAll(name)
    .flatMap((one) => one.split(","))
    .map((one) => one.trim())
    .filter((one) => one !== "");

/** Doesn't reveal whether the template exists. */
const makeForbiddenError = () => forbidden("You need permission to view the insights of every requested template.");

/**
 * Returns the IDs of the requested templates; undefined means all, for callers with access to all. Throws 403 for other callers and 404 for
 * templates that do not exist.
 */
export const resolveTemplates = async (
  ctx: ApiContext,
  request: Request,
  caller: UserCaller,
): Promise<string[] | undefined> => {
  const ids = [...new Set(parseList(request, "template_ids").map((id) => id.toLowerCase()))];
  if (!ids.every(isUuid)) throw invalidQuery("template_ids", "must be ids of templates");
  if (ids.length > MAX_TEMPLATES) throw invalidQuery("template_ids", `must be at most ${MAX_TEMPLATES}`);
  if (ids.length === 0) {
    if (!canViewInsights(caller)) throw makeForbiddenError();
    return undefined;
  }
  for (const id of ids) {
    const template = await ctx.store.get(findTemplate({ id }));
    if (!canViewInsights(caller, template?.organization_id)) throw makeForbiddenError();
    if (!template) throw notFound();
  }
  return ids;
};
