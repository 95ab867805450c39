// With whom a workspace is shared: people, and all members of its organization.
import { useSignal } from "@preact/signals";
import type { WorkspaceRole } from "#schema/workspaces/acl.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { call, Problem, wordsOf } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { me } from "../../data/session.ts";
import { Button, IconButton } from "../../parts/button.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { Field, Options, Select } from "../../parts/field.tsx";
import { into } from "../../parts/handlers.ts";
import { Icon } from "../../parts/icon.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { say } from "../../shell/toasts.tsx";

const ROLES = [
  { value: "use", label: "See it and work in it" },
  { value: "admin", label: "Also start, stop and change it" },
] as const;

export const Sharing = ({ workspace }: { workspace: Workspace }) => {
  const { id } = workspace;
  const path = { workspace: id };
  const { state, again } = useResource(`acl ${id}`, () => call("GET /workspaces/:workspace/acl", { path }));
  const { data, error } = state.value;
  if (error instanceof Problem && error.status === 403)
    return <Empty icon="user" title="Nothing is shared here" text={wordsOf(error)} />;
  if (error && !data) return <Failed what="The sharing cannot be read" error={error} again={again} />;
  if (!data) return <Skeleton lines={4} />;
  const set = async (of: "user_roles" | "group_roles", subject: string, role: string, done: string): Promise<void> => {
    await call("PATCH /workspaces/:workspace/acl", { path, body: { [of]: { [subject]: role } } });
    await again();
    say(done);
  };
  const rows = [
    ...data.groups.map((one) => ({
      id: one.id,
      of: "group_roles" as const,
      role: one.role,
      icon: "layers" as const,
      name: `Everybody in ${one.organization_display_name || one.organization_name}`,
    })),
    ...data.users.map((one) => ({
      id: one.id,
      of: "user_roles" as const,
      role: one.role,
      icon: "user" as const,
      name: one.name || one.username,
    })),
  ];
  return (
    <div class="split">
      <section class="stack" aria-labelledby="shared">
        <div class="head">
          <h2 id="shared">Shared with</h2>
        </div>
        {rows.length === 0 ? (
          <p class="mut">Only its owner and administrators see this workspace. Choose who else may work in it.</p>
        ) : (
          <ul class="panel list">
            {rows.map(({ id, of, role, icon, name }) => (
              <li key={id} class="item">
                <span class="line">
                  <Icon name={icon} />
                  <span class="med clip">{name}</span>
                </span>
                <span class="line">
                  <select
                    class="input"
                    aria-label={`What ${name} may do`}
                    value={role}
                    onChange={(event) => void set(of, id, event.currentTarget.value, `${name} may do something else`)}
                  >
                    {ROLES.map((one) => (
                      <option key={one.value} value={one.value}>
                        {one.label}
                      </option>
                    ))}
                  </select>
                  <IconButton
                    icon="x"
                    label={`End sharing with ${name}`}
                    onPress={() => set(of, id, "", `No longer shared with ${name}`)}
                  />
                </span>
              </li>
            ))}
          </ul>
        )}
      </section>
      <Add workspace={workspace} taken={new Set(rows.map((row) => row.id))} set={set} />
    </div>
  );
};

type AddProps = {
  workspace: Workspace;
  taken: ReadonlySet<string>;
  set: (of: "user_roles" | "group_roles", subject: string, role: string, done: string) => Promise<void>;
};

const Add = ({ workspace, taken, set }: AddProps) => {
  const words = useSignal("");
  const chosen = useSignal("");
  const role = useSignal<WorkspaceRole>("use");
  const { state } = useResource(`people ${words.value}`, () =>
    call("GET /users", { query: { q: words.value, limit: 20 } }),
  );
  const people = (state.value.data?.users ?? []).filter(
    ({ id }) => !taken.has(id) && id !== workspace.owner_id && id !== me.value?.id,
  );
  const choices = [
    { value: "", label: "Choose one" },
    ...(taken.has(workspace.organization_id)
      ? []
      : [{ value: workspace.organization_id, label: `Everybody in ${workspace.organization_name}` }]),
    ...people.map(({ id, name, username }) => ({ value: id, label: name ? `${name} (${username})` : username })),
  ];
  const add = async (): Promise<void> => {
    const isAll = chosen.value === workspace.organization_id;
    const name = choices.find(({ value }) => value === chosen.value)?.label ?? "";
    await set(isAll ? "group_roles" : "user_roles", chosen.value, role.value, `Shared with ${name}`);
    chosen.value = "";
  };
  return (
    <aside class="panel" aria-label="Share with">
      <header>
        <h2>Share with</h2>
      </header>
      <div class="body stack">
        <Field
          label="Search people"
          type="search"
          value={words.value}
          spellcheck={false}
          onInput={(event) => {
            words.value = event.currentTarget.value.replace(/[:"]/g, "");
          }}
        />
        <Select
          key={[...taken].join(" ")}
          label="Person or everybody"
          value={chosen.value}
          choices={choices}
          onPick={into(chosen)}
        />
        <Options
          label="May"
          value={role.value}
          choices={ROLES}
          onPick={(value) => {
            role.value = value as WorkspaceRole;
          }}
        />
        <p class="small dim">Whoever loses access is disconnected at once.</p>
      </div>
      <footer>
        <Button look="primary" disabled={chosen.value === ""} onPress={add}>
          Share
        </Button>
      </footer>
    </aside>
  );
};
