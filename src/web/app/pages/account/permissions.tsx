// What the models of one's new chats may do without asking. The first rule that fits decides.
import { useSignal } from "@preact/signals";
import type { ChatPermissions, PermissionAction, PermissionRule } from "#schema/chats/chat-permissions.ts";
import { call } from "../../data/api.ts";
import { useResource } from "../../data/resource.ts";
import { Button, IconButton } from "../../parts/button.tsx";
import { Failed } from "../../parts/empty.tsx";
import { Field, Select } from "../../parts/field.tsx";
import { Skeleton } from "../../parts/skeleton.tsx";
import { say } from "../../shell/toasts.tsx";

const ACTIONS = [
  { value: "allow", label: "Run it" },
  { value: "ask", label: "Ask me" },
  { value: "deny", label: "Refuse it" },
];

export const Permissions = () => {
  const { state, again } = useResource("permissions", () => call("GET /chats/config/user-permissions"));
  const { data, error } = state.value;
  if (error) return <Failed what="Your permissions cannot be read" error={error} again={again} />;
  if (!data) return <Skeleton lines={6} />;
  return <Editor key={JSON.stringify(data)} kept={data.permissions} again={again} />;
};

const Editor = ({ kept, again }: { kept: ChatPermissions | null; again: () => Promise<void> }) => {
  const fallback = useSignal<string>(kept?.default ?? "none");
  const rules = useSignal<readonly PermissionRule[]>(kept?.rules ?? []);
  const isOwn = fallback.value !== "none";
  const change = (at: number, patch: Partial<PermissionRule>): void => {
    rules.value = rules.value.map((rule, index) => (index === at ? { ...rule, ...patch } : rule));
  };
  const save = async (): Promise<void> => {
    const permissions = isOwn
      ? {
          default: fallback.value as PermissionAction,
          // A rule without words of a command has no such member.
          rules: rules.value.map(({ tool, command, action }) => ({
            ...{ tool: tool.trim(), action },
            ...(command?.trim() ? { command: command.trim() } : {}),
          })),
        }
      : null;
    await call("PUT /chats/config/user-permissions", { body: { permissions } });
    await again();
    say("New chats begin with these permissions");
  };
  return (
    <section class="panel" aria-labelledby="permissions">
      <header>
        <h2 id="permissions">Permissions of new chats</h2>
      </header>
      <div class="body stack">
        <Select
          label="What models want to do"
          value={fallback.value}
          choices={[{ value: "none", label: "As the server has it" }, ...ACTIONS]}
          hint="For calls that no rule names. Chats that are there keep theirs."
          onPick={(value) => {
            fallback.value = value;
          }}
        />
        {isOwn && (
          <>
            {rules.value.length > 0 && (
              <ol class="stack" aria-label="Rules">
                {rules.value.map((rule, at) => (
                  <li key={at} class="rule">
                    <Field
                      label="Tool"
                      value={rule.tool}
                      spellcheck={false}
                      placeholder="execute"
                      onInput={(event) => change(at, { tool: event.currentTarget.value })}
                    />
                    <Field
                      label="Command begins with"
                      value={rule.command ?? ""}
                      spellcheck={false}
                      placeholder="git status"
                      disabled={rule.tool.trim() !== "execute"}
                      onInput={(event) => change(at, { command: event.currentTarget.value })}
                    />
                    <Select
                      label="Then"
                      value={rule.action}
                      choices={ACTIONS}
                      onPick={(value) => change(at, { action: value as PermissionAction })}
                    />
                    <IconButton
                      icon="trash"
                      label={`Remove rule ${at + 1}`}
                      onPress={() => {
                        rules.value = rules.value.toSpliced(at, 1);
                      }}
                    />
                  </li>
                ))}
              </ol>
            )}
            <div>
              <Button
                icon="plus"
                onPress={() => {
                  rules.value = [...rules.value, { tool: "execute", action: "allow" }];
                }}
              >
                Add rule
              </Button>
            </div>
          </>
        )}
      </div>
      <footer>
        <Button look="primary" onPress={save}>
          Save permissions
        </Button>
      </footer>
    </section>
  );
};
