// Access to a resource: users and groups with their roles, and a panel to add one.
import { useSignal } from "@preact/signals";
import { call } from "../data/api.ts";
import { useResource } from "../data/resource.ts";
import { me } from "../data/session.ts";
import { showError } from "../shell/toasts.tsx";
import { Button, IconButton } from "./button.tsx";
import { Field, Options, Select } from "./field.tsx";
import { writeTo } from "./handlers.ts";
import { Icon } from "./icon.tsx";

/** A user or a group. */
export type Subject = {
  readonly id: string;
  readonly kind: "user" | "group";
  readonly name: string;
  readonly role: string;
};

type Group = {
  readonly id: string;
  readonly name: string;
  readonly display_name: string;
  readonly organization_id: string;
  readonly organization_name: string;
  readonly organization_display_name: string;
};

/** Returns the group's name for display. The group of all members is named after its organization. */
export const formatGroupName = (one: Group): string =>
  one.id === one.organization_id
    ? `Everyone in ${one.organization_display_name || one.organization_name}`
    : one.display_name || one.name;

export const formatPersonName = ({ name, username }: { readonly name: string; readonly username: string }): string =>
  name ? `${name} (${username})` : username;

type Role = { readonly value: string; readonly label: string };

type Change = {
  readonly subject: Pick<Subject, "id" | "kind" | "name">;
  readonly role: string;
  readonly roles: readonly Role[];
  /** The roles as shown on the page, and a function that loads the current ones. */
  readonly shown: readonly Subject[];
  readonly load: () => Promise<readonly Subject[]>;
  /** Reloads the roles. */
  readonly reload: () => Promise<void>;
};

/** Throws, and reloads the list, if someone else has given the subject another role. Choosing again overwrites it. */
export const requireUnchangedRole = async ({ subject, role, roles, shown, load, reload }: Change): Promise<void> => {
  const findRole = (subjects: readonly Subject[]): string =>
    subjects.find(({ id, kind }) => id === subject.id && kind === subject.kind)?.role ?? "";
  const currentRole = findRole(await load());
  if (currentRole === findRole(shown) || currentRole === role) return;
  await reload();
  const roleLabel = roles.find(({ value }) => value === currentRole)?.label ?? "No access";
  throw new Error(
    `Someone else changed this in the meantime: ${subject.name}, ${roleLabel}. Choose again to replace it.`,
  );
};

type ListProps = {
  readonly heading: string;
  /** Shown if the list is empty. */
  readonly empty: string;
  readonly subjects: readonly Subject[];
  readonly roles: readonly Role[];
  /** An empty role revokes access. */
  readonly setRole: (subject: Pick<Subject, "id" | "kind" | "name">, role: string) => Promise<void>;
};

export const AccessList = ({ heading, empty, subjects, roles, setRole }: ListProps) => (
  <section class="stack" aria-labelledby="access">
    <div class="head">
      <h2 id="access">{heading}</h2>
    </div>
    {subjects.length === 0 ? (
      <p class="mut">{empty}</p>
    ) : (
      <ul class="panel list">
        {subjects.map((subject) => (
          <li key={subject.id} class="item access">
            <span class="line">
              <Icon name={subject.kind === "group" ? "layers" : "user"} />
              <span class="med clip">{subject.name}</span>
            </span>
            <span class="line">
              <select
                class="input"
                aria-label={`Access of ${subject.name}`}
                value={subject.role}
                data-role={subject.role}
                onChange={({ currentTarget }) =>
                  void setRole(subject, currentTarget.value)
                    .catch(showError)
                    .finally(() => {
                      // Resets the control if the change was not saved.
                      currentTarget.value = currentTarget.dataset.role ?? "";
                    })
                }
              >
                {roles.map(({ value, label }) => (
                  <option key={value} value={value}>
                    {label}
                  </option>
                ))}
              </select>
              <IconButton icon="x" label={`Remove access for ${subject.name}`} onPress={() => setRole(subject, "")} />
            </span>
          </li>
        ))}
      </ul>
    )}
  </section>
);

type AddProps = Pick<ListProps, "roles" | "setRole"> & {
  readonly title: string;
  readonly verb: string;
  /** The organization whose groups are offered. */
  readonly organization_id: string;
  /** IDs that are already on the list or need no access. */
  readonly excludedIds: ReadonlySet<string>;
  /** A note about the consequences. */
  readonly note: string;
};

export const AccessAdd = ({ title, verb, organization_id, excludedIds, note, roles, setRole }: AddProps) => {
  const search = useSignal("");
  const chosenId = useSignal("");
  const role = useSignal(roles[0]?.value ?? "");
  const people = useResource(`people ${search.value}`, () =>
    call("GET /users", { query: { q: search.value, limit: 20 } }),
  );
  const groups = useResource(`groups ${organization_id}`, () =>
    call("GET /organizations/:organization/groups", { path: { organization: organization_id } }),
  );
  const candidates = [
    ...(groups.state.value.data ?? []).map((one) => ({
      id: one.id,
      kind: "group" as const,
      name: formatGroupName(one),
    })),
    ...(people.state.value.data?.users ?? [])
      .filter(({ id }) => id !== me.value?.id)
      .map((one) => ({ id: one.id, kind: "user" as const, name: formatPersonName(one) })),
  ].filter(({ id }) => !excludedIds.has(id));
  const add = async (): Promise<void> => {
    const subject = candidates.find(({ id }) => id === chosenId.value);
    if (!subject) return;
    // Cleared first, because a select cannot show a value that is no longer among its options.
    chosenId.value = "";
    await setRole(subject, role.value);
  };
  return (
    <aside class="panel" aria-label={title}>
      <header>
        <h2>{title}</h2>
      </header>
      <div class="body stack">
        <Field
          label="Search people"
          type="search"
          value={search.value}
          spellcheck={false}
          onInput={(event) => {
            search.value = event.currentTarget.value.replace(/[:"]/g, "");
          }}
        />
        <Select
          key={[...excludedIds].join(" ")}
          label="User or group"
          value={chosenId.value}
          choices={[
            { value: "", label: "Choose one" },
            ...candidates.map(({ id, name }) => ({ value: id, label: name })),
          ]}
          onPick={writeTo(chosenId)}
        />
        <Options label="Access" value={role.value} choices={roles} onPick={writeTo(role)} />
        <p class="small dim">{note}</p>
      </div>
      <footer>
        <Button look="primary" disabled={chosenId.value === ""} onPress={add}>
          {verb}
        </Button>
      </footer>
    </aside>
  );
};
