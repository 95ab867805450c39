// The templates one sees, as cards; those who look after them bring new ones.
import { useSignal } from "@preact/signals";
import { useLocation } from "preact-iso";
import type { Template } from "#schema/templates/template.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button } from "../../parts/button.tsx";
import { Empty, Failed } from "../../parts/empty.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { Frame } from "../../shell/frame.tsx";
import { Import } from "./import.tsx";
import { mayManageTemplates } from "./may.ts";

export default function TemplatesPage() {
  const { route } = useLocation();
  const { state, again } = useResource("templates", () => call("GET /templates"));
  const isImporting = useSignal(false);
  const { data, error } = state.value;
  const add = mayManageTemplates.value && (
    <Button
      look="primary"
      icon="plus"
      onPress={() => {
        isImporting.value = true;
      }}
    >
      Import template
    </Button>
  );
  return (
    <Frame title="Templates" actions={data && data.length > 0 ? add : undefined}>
      <div class="page">
        {error ? (
          <Failed what="The templates cannot be read" error={error} again={again} />
        ) : !data ? (
          <Skeleton lines={6} />
        ) : data.length === 0 ? (
          <Empty
            icon="layers"
            title="No templates yet"
            text="A template says what a workspace is made of. It is a folder with a template.yaml."
          >
            {add}
          </Empty>
        ) : (
          <div class="cards">
            {data.map((one) => (
              <Card key={one.id} template={one} />
            ))}
          </div>
        )}
      </div>
      {isImporting.value && (
        <Import
          onDone={({ id }) => route(`/templates/${id}`)}
          onClose={() => {
            isImporting.value = false;
            void again();
          }}
        />
      )}
    </Frame>
  );
}

const PICTURE = /^(?:\/|data:image\/)/;

const Card = ({ template }: { template: Template }) => (
  <a class="pick" href={`/templates/${template.id}`}>
    <span class="art">
      {PICTURE.test(template.icon) ? <img src={template.icon} alt="" width="20" height="20" /> : <Icon name="layers" />}
    </span>
    <span class="line">
      <span class="med clip">{template.display_name || template.name}</span>
      {template.deprecated && <span class="badge">Deprecated</span>}
    </span>
    <p>
      {template.description || `Runs by ${template.provisioner}.`} Used by {template.active_user_count}.
    </p>
  </a>
);
