// Editor for the default permissions of new chats: a list of rules, where the first match wins.
import { useSignal } from "@preact/signals";
import type { ChatPermissions, PermissionAction, PermissionRule } from "#schema/chats/chat-permissions.ts";
import { showToast } from "../shell/toasts.tsx";
import { Button, IconButton } from "./button.tsx";
import { Field, Select } from "./field.tsx";
import { writeTo } from "./handlers.ts";

const listActions = (askLabel: string) => [
  { value: "allow", label: "Allow" },
  { value: "ask", label: askLabel },
  { value: "deny", label: "Deny" },
];
/** The permission modes, then the stricter options. */
const listDefaults = (askLabel: string) => [
  { value: "ask_changes", label: `${askLabel} before changes` },
  { value: "accept_edits", label: "Accept edits" },
  { value: "allow", label: "Allow everything" },
  { value: "ask", label: `${askLabel} before every call` },
  { value: "deny", label: "Deny everything" },
];

type EditorProps = {
  readonly title: string;
  readonly stored: ChatPermissions | null;
  /** The label for having no permissions of its own. */
  readonly noneLabel: string;
  /** The label for asking: Ask me. */
  readonly askLabel: string;
  readonly save: (permissions: ChatPermissions | null) => Promise<unknown>;
};

export const PermissionsEditor = ({ title, stored, noneLabel, askLabel, save }: EditorProps) => {
  const choices = listActions(askLabel);
  const fallback = useSignal<string>(stored?.default ?? "none");
  const rules = useSignal<readonly PermissionRule[]>(stored?.rules ?? []);
  const hasPermissions = fallback.value !== "none";
  const changeRule = (ruleIndex: number, patch: Partial<PermissionRule>): void => {
    rules.value = rules.value.map((rule, index) => (index === ruleIndex ? { ...rule, ...patch } : rule));
  };
  const savePermissions = async (): Promise<void> => {
    const permissions = hasPermissions
      ? {
          default: fallback.value as ChatPermissions["default"],
          // A rule without command words omits that member.
          rules: rules.value.map(({ tool, command, exact, action }) => ({
            tool: tool.trim(),
            action,
            ...(command?.trim() ? { command: command.trim() } : {}),
            ...(command?.trim() && exact ? { exact } : {}),
          })),
        }
      : null;
    await save(permissions);
    showToast("Permissions saved");
  };
  return (
    <section class="panel" aria-labelledby="permissions">
      <header>
        <h2 id="permissions">{title}</h2>
      </header>
      <div class="body stack">
        <Select
          label="Permission mode of new chats"
          value={fallback.value}
          choices={[{ value: "none", label: noneLabel }, ...listDefaults(askLabel)]}
          hint="Applies when no rule matches. Existing chats are unchanged."
          onPick={writeTo(fallback)}
        />
        {hasPermissions && (
          <>
            {rules.value.length > 0 && (
              <ol class="stack" aria-label="Rules">
                {rules.value.map((rule, index) => (
                  <li key={index} class="rule">
                    <Field
                      label="Tool"
                      value={rule.tool}
                      spellcheck={false}
                      placeholder="execute"
                      onInput={(event) => changeRule(index, { tool: event.currentTarget.value })}
                    />
                    <Field
                      label={rule.exact ? "Command is exactly" : "Command starts with"}
                      value={rule.command ?? ""}
                      spellcheck={false}
                      placeholder="git status"
                      disabled={rule.tool.trim() !== "execute"}
                      onInput={(event) => changeRule(index, { command: event.currentTarget.value })}
                    />
                    <Select
                      label="Action"
                      value={rule.action}
                      choices={choices}
                      onPick={(value) => changeRule(index, { action: value as PermissionAction })}
                    />
                    <IconButton
                      icon="trash"
                      label={`Remove rule ${index + 1}`}
                      onPress={() => {
                        rules.value = rules.value.toSpliced(index, 1);
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
        <Button look="primary" onPress={savePermissions}>
          Save permissions
        </Button>
      </footer>
    </section>
  );
};
