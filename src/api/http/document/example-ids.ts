// Placeholder IDs and times in the document's example bodies. The API's page replaces them with the reader's own, so that an example works
// when it is sent. Both functions are sent to the browser as source and must not reference anything outside themselves.

/** Placeholder for an ID that must be looked up first. */
export const ANY_ID = "3fa85f64-5717-4562-b3fc-2c963f66afa6";

/** Placeholder for a time in the future. */
export const ANY_TIME = "2099-01-31T09:30:00Z";

type Document = {
  paths: Record<string, Record<string, { requestBody?: { content?: Record<string, { example?: unknown }> } }>>;
};
/** Sends a GET request and returns the response; undefined when this caller cannot get one. */
type Get = (path: string) => Promise<unknown>;

/**
 * Returns the caller's IDs, keyed by the member of a body that holds such an ID or whose keys are such IDs, and a deadline eight hours
 * ahead.
 */
export const loadIds = async (get: Get, now: number): Promise<Record<string, string>> => {
  const ids: Record<string, string> = { deadline: new Date(now + 28_800_000).toISOString() };
  const templates = (await get("/api/v2/templates")) as { id: string }[] | undefined;
  const template = templates?.[0];
  if (template) ids.template_id = template.id;
  const organizations = (await get("/api/v2/users/me/organizations")) as
    | { id: string; is_default: boolean }[]
    | undefined;
  const organization = organizations?.find((one) => one.is_default) ?? organizations?.[0];
  // An organization's group of all members has the organization's ID.
  const { id } = organization ?? {};
  if (id) Object.assign(ids, { organization_id: id, group_roles: id, group_perms: id });
  return ids;
};

/** Replaces the placeholder IDs and times, and returns the document. */
export const withIds = (document: Document, ids: Record<string, string>, placeholders: readonly string[]): Document => {
  const fill = (value: unknown, member: string): unknown => {
    if (typeof value === "string" && placeholders.includes(value)) return ids[member] ?? value;
    if (Array.isArray(value)) return value.map((one) => fill(one, member));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, one]) => [
        placeholders.includes(key) ? (ids[member] ?? key) : key,
        fill(one, key),
      ]),
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
