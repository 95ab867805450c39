// The home page of a user without workspaces: a greeting and the available templates, or whom to ask if none exist.
import { useLocation } from "preact-iso/router";
import type { Template } from "#schema/templates/template.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { isSiteOwner, isUserAdministrator, me, organizations } from "../../data/session.ts";
import { workspaces } from "../../data/workspaces.ts";
import { Button, ButtonLink } from "../../parts/button.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { Picture } from "../../parts/picture.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { hasPage } from "../../shell/page-list.ts";
import { canManageTemplates } from "../templates/can-manage.ts";
import { isEditorTemplate, toNewWorkspaceUrl } from "../templates/names.ts";

const MAX_SHOWN = 6;

export const FirstVisit = () => {
  const { state, reload } = useResource("templates", () => call("GET /templates"));
  const { data, error } = state.value;
  if (error && !data) return <Failed title="Can't load the templates" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={5} />;
  const usable = data.filter(({ deprecated }) => !deprecated);
  const name = me.value?.name || me.value?.username;
  return (
    <section class="stack loose" aria-labelledby="welcome">
      <div class="stack">
        <h2 id="welcome">Welcome{name ? `, ${name}` : ""}</h2>
        <p class="mut">
          {usable.length > 0
            ? "A workspace is a computer for one task, made from a template. Choose one to start."
            : "A workspace is a computer for one task, made from a template."}
        </p>
      </div>
      {usable.length > 0 ? <TemplateList templates={usable} /> : <NoTemplates />}
    </section>
  );
};

const TemplateList = ({ templates }: { templates: readonly Template[] }) => (
  <>
    <ul class="panel list">
      {templates.slice(0, MAX_SHOWN).map((one) => (
        <li key={one.id} class="item">
          <span class="line">
            <Picture of={one.icon} otherwise="box" />
            <span class="med clip">{one.display_name || one.name}</span>
          </span>
          {one.unavailable === "" ? (
            <ButtonLink small look="primary" href={toNewWorkspaceUrl(one)}>
              Create workspace
            </ButtonLink>
          ) : (
            <span class="badge">Unavailable</span>
          )}
          {one.unavailable !== "" ? (
            <span class="sub">{one.unavailable}</span>
          ) : (
            one.description && <span class="sub clip">{one.description}</span>
          )}
        </li>
      ))}
    </ul>
    <div class="line wrap">
      <ButtonLink icon="branch" href="/new?repo=">
        Open a repository
      </ButtonLink>
      <StartEditor templates={templates} />
      {templates.length > MAX_SHOWN && <ButtonLink href="/new">All templates</ButtonLink>}
      {hasPage("/chats") && (
        <ButtonLink icon="chat" href="/chats">
          New chat
        </ButtonLink>
      )}
      {workspaces.value.size > 0 && <ButtonLink href="/workspaces?q=">See shared workspaces</ButtonLink>}
      {(isSiteOwner.value || isUserAdministrator.value) && (
        <ButtonLink icon="user" href="/admin/people">
          Invite people
        </ButtonLink>
      )}
    </div>
  </>
);

/** Links to a new workspace with an editor in the browser. Template administrators add its template first. */
const StartEditor = ({ templates }: { templates: readonly Template[] }) => {
  const { route } = useLocation();
  const existing = templates.find(isEditorTemplate);
  if (existing) {
    return (
      <ButtonLink icon="code" href={toNewWorkspaceUrl(existing)}>
        Start VS Code
      </ButtonLink>
    );
  }
  if (!canManageTemplates.value) return null;
  const addEditorTemplate = async (): Promise<void> => {
    const { addEditor } = await import("../templates/make-example.ts");
    route(await addEditor());
  };
  return (
    <Button icon="code" onPress={addEditorTemplate}>
      Start VS Code
    </Button>
  );
};

/** Names the people to ask. Site owners see the next step instead. */
export const NoTemplates = () => {
  const [organization] = organizations.value;
  const { state } = useResource(organization && !isSiteOwner.value ? `whom to ask ${organization.id}` : undefined, () =>
    call("GET /organizations/:organization/administrators", { path: { organization: organization?.id ?? "" } }),
  );
  if (isSiteOwner.value) {
    return (
      <Empty
        icon="layers"
        title="No templates yet"
        text="Workspaces are created from templates. Add one so that the people you invite can get started."
      >
        <ButtonLink look="primary" href="/templates">
          Add a template
        </ButtonLink>
        <ButtonLink href="/admin/people">Invite people</ButtonLink>
      </Empty>
    );
  }
  const administrators = (state.value.data ?? []).map(({ name, username }) =>
    name ? `${name} (${username})` : username,
  );
  return (
    <Empty
      icon="layers"
      title="No templates available"
      text={
        administrators.length > 0
          ? `Ask ${administrators.slice(0, 3).join(" or ")} for access to one.`
          : "Ask the person who invited you for access to one."
      }
    >
      {workspaces.value.size > 0 && (
        <ButtonLink look="primary" href="/workspaces?q=">
          See shared workspaces
        </ButtonLink>
      )}
      {hasPage("/chats") && (
        <ButtonLink icon="chat" href="/chats">
          New chat
        </ButtonLink>
      )}
    </Empty>
  );
};
