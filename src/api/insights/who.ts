// Who may see which report, and for which templates (facts/platform 3.8): a caller who may not view them gets 403 from every report.
import { forbidden, notFound } from "#base/errors.ts";
import { isUuid } from "#base/ids.ts";
import { findTemplate } from "#db/templates/templates.ts";
import { mayViewInsights } from "#domain/access.ts";
import { wrongQuery } from "#domain/insights/zones.ts";
import type { ApiContext } from "../context.ts";
import type { UserCaller } from "../http/caller.ts";

const MAX_TEMPLATES = 500;

/** Names of query parameters that are no part of the question. */
const CREDENTIALS = ["service_session_token", "coder_session_token", "access_token"];

/** Insights refuse parameters that they do not know (facts/platform 3.1). */
export const checkKnown = (request: Request, known: object): void => {
  for (const name of new URL(request.url).searchParams.keys()) {
    if (!(name in known) && !CREDENTIALS.includes(name)) throw wrongQuery(name, "is not a parameter of this report");
  }
};

/** Values of a parameter that is repeated or has commas. */
export const listIn = (request: Request, name: string): string[] =>
  new URL(request.url).searchParams
    .getAll(name)
    .flatMap((one) => one.split(","))
    .map((one) => one.trim())
    .filter((one) => one !== "");

/** Says nothing of whether the template exists. */
const refused = () => forbidden("This takes the right to view the insights of every template asked for.");

/** Ids of the templates asked for; undefined: all, for callers who may view all. Throws 403 for others, 404 for what does not exist. */
export const templatesFor = async (
  ctx: ApiContext,
  request: Request,
  caller: UserCaller,
): Promise<string[] | undefined> => {
  const ids = [...new Set(listIn(request, "template_ids").map((id) => id.toLowerCase()))];
  if (!ids.every(isUuid)) throw wrongQuery("template_ids", "must be ids of templates");
  if (ids.length > MAX_TEMPLATES) throw wrongQuery("template_ids", `must be at most ${MAX_TEMPLATES}`);
  if (ids.length === 0) {
    if (!mayViewInsights(caller)) throw refused();
    return undefined;
  }
  for (const id of ids) {
    const template = await ctx.store.get(findTemplate({ id }));
    if (!mayViewInsights(caller, template?.organization_id)) throw refused();
    if (!template) throw notFound();
  }
  return ids;
};
