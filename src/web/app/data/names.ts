// Names of resources by ID, collected from API responses, so that commands show `ada/web` instead of an ID.
type KnownName = {
  readonly name: string;
  /** The organization's name, if the resource belongs to one. */
  readonly organization?: string;
  /** The template's ID, for a version. */
  readonly template?: string;
};

const knownNames = new Map<string, KnownName>();
/** Maximum number of names kept. */
const MAX_NAMES = 5000;
const MAX_NAMES_PER_LIST = 500;

const toText = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);

const addName = (resource: unknown): void => {
  if (typeof resource !== "object" || resource === null) return;
  const { id, name, username, owner_name, ...more } = resource as Readonly<Record<string, unknown>>;
  const ownName = toText(username) ?? toText(name);
  const key = toText(id);
  if (key === undefined || ownName === undefined) return;
  const [owner, organization, template] = [
    toText(owner_name),
    toText(more.organization_name),
    toText(more.template_id),
  ];
  const fullName = owner === undefined ? ownName : `${owner}/${ownName}`;
  knownNames.set(key, { name: fullName, ...(organization ? { organization } : {}), ...(template ? { template } : {}) });
  const version = toText(more.active_version_id);
  if (version !== undefined) knownNames.set(version, { name: "", template: key });
};

/** Collects names from a response: from the resource itself, from its lists, and from lists within those. */
export const collectNames = (answer: unknown): void => {
  if (typeof answer !== "object" || answer === null) return;
  if (knownNames.size > MAX_NAMES) knownNames.clear();
  const lists = Array.isArray(answer) ? [answer] : [[answer], ...Object.values(answer).filter(Array.isArray)];
  for (const list of lists) for (const one of list.slice(0, MAX_NAMES_PER_LIST)) addName(one);
};

export const setName = (id: string, name: string): void => void knownNames.set(id, { name });

export const findName = (id: string): KnownName | undefined => knownNames.get(id);
/** Returns the name, or the ID if the name is not known. */
export const getName = (id: string): string => knownNames.get(id)?.name || id;
