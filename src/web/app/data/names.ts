// Names of things by their ids, as answers bring them, so that lines of the command line say `ada/web` and not an id.
type Known = {
  readonly name: string;
  /** By its name, where the thing is of one. */
  readonly organization?: string;
  /** By its id, of a version. */
  readonly template?: string;
};

const known = new Map<string, Known>();
/** A page shows no more than this of what it has read. */
const MOST = 5000;
const OF_A_LIST = 500;

const text = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);

const note = (one: unknown): void => {
  if (typeof one !== "object" || one === null) return;
  const { id, name, username, owner_name, ...more } = one as Readonly<Record<string, unknown>>;
  const own = text(username) ?? text(name);
  const key = text(id);
  if (key === undefined || own === undefined) return;
  const [owner, organization, template] = [text(owner_name), text(more.organization_name), text(more.template_id)];
  const called = owner === undefined ? own : `${owner}/${own}`;
  known.set(key, { name: called, ...(organization ? { organization } : {}), ...(template ? { template } : {}) });
  const version = text(more.active_version_id);
  if (version !== undefined) known.set(version, { name: "", template: key });
};

/** What an answer says of names: of itself, of what it lists, and of the lists in it. */
export const learnNames = (answer: unknown): void => {
  if (typeof answer !== "object" || answer === null) return;
  if (known.size > MOST) known.clear();
  const lists = Array.isArray(answer) ? [answer] : [[answer], ...Object.values(answer).filter(Array.isArray)];
  for (const list of lists) for (const one of list.slice(0, OF_A_LIST)) note(one);
};

export const nameFor = (id: string, name: string): void => void known.set(id, { name });

export const findKnown = (id: string): Known | undefined => known.get(id);
/** The name, else the id. */
export const getName = (id: string): string => known.get(id)?.name || id;
