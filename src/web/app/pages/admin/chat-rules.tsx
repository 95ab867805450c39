// Settings of all chats: default permissions, system prompts and retention.
import { useSignal } from "@preact/signals";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button } from "../../parts/button.tsx";
import { Failed } from "../../parts/empty.tsx";
import { Area, Field, Switch } from "../../parts/field.tsx";
import { writeTextTo, writeTo } from "../../parts/handlers.ts";
import { PermissionsEditor } from "../../parts/permissions-editor.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { showToast } from "../../shell/toasts.tsx";

const loadRules = async () => {
  const [permissions, system, plan, retention, archiving, overrides] = await Promise.all([
    call("GET /chats/config/default-permissions"),
    call("GET /chats/config/system-prompt"),
    call("GET /chats/config/plan-mode-instructions"),
    call("GET /chats/config/retention-days"),
    call("GET /chats/config/auto-archive-days"),
    call("GET /chats/config/personal-model-overrides"),
  ]);
  return { ...permissions, ...system, ...plan, ...retention, ...archiving, ...overrides };
};
type Rules = Awaited<ReturnType<typeof loadRules>>;

export const ChatRules = () => {
  const { state, reload } = useResource("chat rules", loadRules);
  const { data, error } = state.value;
  if (error) return <Failed title="Can't load the chat settings" error={error} reload={reload} />;
  if (!data) return <Skeleton lines={8} />;
  return (
    <>
      <PermissionsEditor
        key={JSON.stringify(data.permissions)}
        title="Permissions for new chats"
        stored={data.permissions}
        noneLabel="Default: allow everything"
        askLabel="Ask the chat's owner"
        save={async (permissions) => {
          await call("PUT /chats/config/default-permissions", { body: { permissions } });
          await reload();
        }}
      />
      <p class="small mut">
        Applies to users who haven't set their own. In local workspaces, a person's new chat asks before changes in any
        case, until the person chooses another mode.
      </p>
      <PromptSettings key={`${data.system_prompt} ${data.plan_mode_instructions}`} rules={data} reload={reload} />
      <RetentionSettings key={`${data.retention_days} ${data.auto_archive_days}`} rules={data} reload={reload} />
    </>
  );
};

type PartProps = { readonly rules: Rules; readonly reload: () => Promise<void> };

const PromptSettings = ({ rules, reload }: PartProps) => {
  const systemPrompt = useSignal(rules.system_prompt);
  const includesDefaultPrompt = useSignal(rules.include_default_system_prompt);
  const planInstructions = useSignal(rules.plan_mode_instructions);
  const save = async (): Promise<void> => {
    await Promise.all([
      call("PUT /chats/config/system-prompt", {
        body: { system_prompt: systemPrompt.value, include_default_system_prompt: includesDefaultPrompt.value },
      }),
      call("PUT /chats/config/plan-mode-instructions", { body: { plan_mode_instructions: planInstructions.value } }),
    ]);
    await reload();
    showToast("Prompts saved. Chats use them from their next model call.");
  };
  return (
    <section class="panel" aria-labelledby="words">
      <header>
        <h2 id="words">System prompts</h2>
      </header>
      <div class="body stack">
        <Switch
          label="Include the default system prompt"
          checked={includesDefaultPrompt.value}
          onSwitch={writeTo(includesDefaultPrompt)}
        />
        <Area label="Every chat" rows={5} value={systemPrompt.value} onInput={writeTextTo(systemPrompt)} />
        <Area
          label="Plan mode"
          rows={3}
          value={planInstructions.value}
          hint="In plan mode, a chat can read files and write its plan, but change nothing else."
          onInput={writeTextTo(planInstructions)}
        />
      </div>
      <footer>
        <Button look="primary" onPress={save}>
          Save prompts
        </Button>
      </footer>
    </section>
  );
};

const RetentionSettings = ({ rules, reload }: PartProps) => {
  const archiveDays = useSignal(String(rules.auto_archive_days));
  const retentionDays = useSignal(String(rules.retention_days));
  const save = async (): Promise<void> => {
    await Promise.all([
      call("PUT /chats/config/auto-archive-days", { body: { auto_archive_days: Number(archiveDays.value) } }),
      call("PUT /chats/config/retention-days", { body: { retention_days: Number(retentionDays.value) } }),
    ]);
    await reload();
    showToast("Retention saved");
  };
  return (
    <section class="panel" aria-labelledby="keeping">
      <header>
        <h2 id="keeping">Retention</h2>
      </header>
      <div class="body stack">
        <Field
          label="Archive after inactivity (days)"
          type="number"
          min={0}
          max={3650}
          value={archiveDays.value}
          hint="0: never."
          onInput={writeTextTo(archiveDays)}
        />
        <Field
          label="Delete archived chats after (days)"
          type="number"
          min={0}
          max={3650}
          value={retentionDays.value}
          hint="0: never."
          onInput={writeTextTo(retentionDays)}
        />
        <Switch
          label="Users can choose the default models of their chats and sub-agents"
          checked={rules.allow_users}
          onSwitch={async (isOn) => {
            await call("PUT /chats/config/personal-model-overrides", { body: { allow_users: isOn } });
            await reload();
          }}
        />
      </div>
      <footer>
        <Button look="primary" onPress={save}>
          Save retention
        </Button>
      </footer>
    </section>
  );
};
