// Ids and times in the example bodies of the document. The document holds one that stands for any; the API's page puts in what its reader
// has, so that a body works as it is sent. Both functions are sent to the browser as they stand: they use nothing from outside.

/** Stands for an id that has to be looked up first. */
export const ANY_ID = "3fa85f64-5717-4562-b3fc-2c963f66afa6";

/** Stands for a time that is yet to come. */
export const ANY_TIME = "2099-01-31T09:30:00Z";

type Document = {
  paths: Record<string, Record<string, { requestBody?: { content?: Record<string, { example?: unknown }> } }>>;
};
/** The answer of a GET, undefined when none exists for this caller. */
type Get = (path: string) => Promise<unknown>;

/** What the caller has, by the member of a body that names it or whose keys are such ids; and a deadline eight hours ahead. */
export const loadIds = async (get: Get, now: number): Promise<Record<string, string>> => {
  const ids: Record<string, string> = { deadline: new Date(now + 28_800_000).toISOString() };
  const templates = (await get("/api/v2/templates")) as { id: string }[] | undefined;
  const template = templates?.[0];
  if (template) ids.template_id = template.id;
  const organizations = (await get("/api/v2/users/me/organizations")) as
    | { id: string; is_default: boolean }[]
    | undefined;
  const organization = organizations?.find((one) => one.is_default) ?? organizations?.[0];
  // The group of all members of an organization has its id.
  const { id } = organization ?? {};
  if (id) Object.assign(ids, { organization_id: id, group_roles: id, group_perms: id });
  return ids;
};

/** Puts the ids and times in for those that stand for any, and returns the document. */
export const withIds = (document: Document, ids: Record<string, string>, any: readonly string[]): Document => {
  const fill = (value: unknown, member: string): unknown => {
    if (typeof value === "string" && any.includes(value)) return ids[member] ?? value;
    if (Array.isArray(value)) return value.map((one) => fill(one, member));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, one]) => [any.includes(key) ? (ids[member] ?? key) : key, fill(one, key)]),
    );
  };
  for (const operations of Object.values(document.paths)) {
    for (const { requestBody } of Object.values(operations)) {
      const media = requestBody?.content?.["application/json"];
      if (media?.example) media.example = fill(media.example, "");
    }
  }
  return document;
};
