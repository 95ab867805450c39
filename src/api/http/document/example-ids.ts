// Ids in the bodies that the API's page fills in. The document holds one that stands for any; the page puts in those of what whoever looks
// at it has, so that a body works as it is sent. Both functions are sent to the browser as they stand: they use nothing from outside.

/** Stands for an id that has to be looked up first. */
export const ANY_ID = "3fa85f64-5717-4562-b3fc-2c963f66afa6";

type Example = Record<string, unknown>;
type Document = {
  paths: Record<string, Record<string, { requestBody?: { content?: Record<string, { example?: Example }> } }>>;
};
/** The answer of a GET, undefined when there is none for whoever asks. */
type Get = (path: string) => Promise<unknown>;

/** What the caller has, by the member of a body that names it: a template, its active version, an organization. */
export const idsOf = async (get: Get): Promise<Record<string, string>> => {
  const ids: Record<string, string> = {};
  const templates = (await get("/api/v2/templates")) as { id: string; active_version_id: string }[] | undefined;
  const template = templates?.[0];
  if (template) Object.assign(ids, { template_id: template.id, template_version_id: template.active_version_id });
  const organizations = (await get("/api/v2/users/me/organizations")) as
    | { id: string; is_default: boolean }[]
    | undefined;
  const organization = organizations?.find((one) => one.is_default) ?? organizations?.[0];
  if (organization) ids.organization_id = organization.id;
  return ids;
};

/** Puts the ids in for the one that stands for any, and answers the document. */
export const withIds = (document: Document, ids: Record<string, string>, any: string): Document => {
  for (const operations of Object.values(document.paths)) {
    for (const { requestBody } of Object.values(operations)) {
      const example = requestBody?.content?.["application/json"]?.example ?? {};
      for (const [member, value] of Object.entries(example)) {
        if (value === any && ids[member] !== undefined) example[member] = ids[member];
      }
    }
  }
  return document;
};
