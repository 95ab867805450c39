// The resources of a workspace and their metadata.
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Time } from "../../parts/time.tsx";

export const WorkspaceDetails = ({ workspace }: { workspace: Workspace }) => {
  const shownResources = workspace.latest_build.resources.filter(({ hide }) => !hide);
  return (
    <section class="panel" aria-labelledby="facts">
      <header>
        <h2 id="facts">Details</h2>
      </header>
      <div class="body">
        <dl class="kv small">
          <dt>Created</dt>
          <dd>
            <Time at={workspace.created_at} ago />
          </dd>
          <dt>Last used</dt>
          <dd>
            <Time at={workspace.last_used_at} ago />
          </dd>
          <dt>Version</dt>
          <dd>{workspace.latest_build.template_version_name}</dd>
          <dt>Organization</dt>
          <dd>{workspace.organization_name}</dd>
          {shownResources.flatMap((resource) => [
            <dt key={resource.id}>{resource.name}</dt>,
            <dd key={`${resource.id} type`} class="mono clip">
              {resource.type}
            </dd>,
            ...resource.metadata.flatMap((one) => [
              <dt key={`${resource.id} ${one.key}`}>{one.key}</dt>,
              <dd key={`${resource.id} ${one.key} value`} class="mono">
                {one.sensitive ? "hidden" : one.value}
              </dd>,
            ]),
          ])}
          {workspace.latest_build.daily_cost > 0 && (
            <>
              <dt>Daily cost</dt>
              <dd class="num">{workspace.latest_build.daily_cost}</dd>
            </>
          )}
        </dl>
      </div>
    </section>
  );
};
