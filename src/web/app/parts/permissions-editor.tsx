// Editor for the default permissions of new chats: a list of rules, where the first match wins.
import { useSignal } from "@preact/signals";
import type { ChatPermissions, PermissionAction, PermissionRule } from "#schema/chats/chat-permissions.ts";
import { showToast } from "../shell/toasts.tsx";
import { Button, IconButton } from "./button.tsx";
import { Field, Select } from "./field.tsx";
import { into } from "./handlers.ts";

const actions = (asks: string) => [
  { value: "allow", label: "Allow" },
  { value: "ask", label: asks },
  { value: "deny", label: "Deny" },
];
/** The permission modes, then the stricter options. */
const defaults = (asks: string) => [
  { value: "ask_changes", label: `${asks} before changes` },
  { value: "accept_edits", label: "Accept edits" },
  { value: "allow", label: "Allow everything" },
  { value: "ask", label: `${asks} before every call` },
  { value: "deny", label: "Deny everything" },
];

type EditorProps = {
  readonly title: string;
  readonly kept: ChatPermissions | null;
  /** The label for having no permissions of its own. */
  readonly none: string;
  /** The label for asking: Ask me. */
  readonly asks: string;
  readonly save: (permissions: ChatPermissions | null) => Promise<unknown>;
};

export const PermissionsEditor = ({ title, kept, none, asks, save }: EditorProps) => {
  const choices = actions(asks);
  const fallback = useSignal<string>(kept?.default ?? "none");
  const rules = useSignal<readonly PermissionRule[]>(kept?.rules ?? []);
  const isOwn = fallback.value !== "none";
  const change = (at: number, patch: Partial<PermissionRule>): void => {
    rules.value = rules.value.map((rule, index) => (index === at ? { ...rule, ...patch } : rule));
  };
  const press = async (): Promise<void> => {
    const permissions = isOwn
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
          choices={[{ value: "none", label: none }, ...defaults(asks)]}
          hint="Applies when no rule matches. Existing chats are unchanged."
          onPick={into(fallback)}
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
                      label={rule.exact ? "Command is exactly" : "Command starts with"}
                      value={rule.command ?? ""}
                      spellcheck={false}
                      placeholder="git status"
                      disabled={rule.tool.trim() !== "execute"}
                      onInput={(event) => change(at, { command: event.currentTarget.value })}
                    />
                    <Select
                      label="Action"
                      value={rule.action}
                      choices={choices}
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
        <Button look="primary" onPress={press}>
          Save permissions
        </Button>
      </footer>
    </section>
  );
};
