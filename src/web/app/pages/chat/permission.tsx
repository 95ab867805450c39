// Calls that wait for a person: allow once, allow always, deny. All of one step are answered together, as the API has it.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { ActionRequired } from "#schema/chats/chat-event.ts";
import type { PermissionAnswers } from "#schema/chats/chat-permissions.ts";
import { call } from "../../data/api.ts";
import { Button } from "../../parts/button.tsx";
import { Icon } from "../../parts/icon.tsx";
import { onKeys } from "../../shell/keys.ts";
import { failed } from "../../shell/toasts.tsx";
import type { LiveChat } from "./live-chat.ts";
import { alwaysWords, detailOf, titleOf } from "./permission-words.ts";

type Answer = PermissionAnswers["answers"][number];

export const Permission = ({ chat, asked }: { chat: LiveChat; asked: ActionRequired }) => {
  const answers = useSignal<readonly Answer[]>([]);
  const open = asked.tool_calls.filter(
    ({ tool_call_id }) => !answers.value.some((one) => one.tool_call_id === tool_call_id),
  );
  const [first] = open;
  const answer = async (given: Omit<Answer, "tool_call_id">): Promise<void> => {
    if (!first) return;
    const all = [...answers.value, { tool_call_id: first.tool_call_id, ...given }];
    if (all.length < asked.tool_calls.length) {
      answers.value = all;
      return;
    }
    await call("POST /chats/:chat/permissions", { path: { chat: chat.id }, body: { answers: [...all] } });
  };
  useEffect(() => {
    const stops = [
      onKeys("a", () => void answer({ decision: "allow" }).catch(failed)),
      onKeys("d", () => void answer({ decision: "deny" }).catch(failed)),
    ];
    return () => {
      for (const stop of stops) stop();
    };
  });
  if (!first) return null;
  const always = alwaysWords(first);
  const done = asked.tool_calls.length - open.length;
  return (
    <div class="ask" role="group" aria-labelledby="asked">
      <div class="line">
        <span class="t-attn">
          <Icon name="key" />
        </span>
        <h3 id="asked">{titleOf(first)}</h3>
        {asked.tool_calls.length > 1 && (
          <span class="push dim small">
            {done + 1} of {asked.tool_calls.length}
          </span>
        )}
      </div>
      <pre class="cmd mono" tabIndex={0}>
        {detailOf(first)}
      </pre>
      <div class="line wrap">
        <Button look="primary" keys="A" onPress={() => answer({ decision: "allow" })}>
          Allow once
        </Button>
        {always !== undefined && (
          <Button onPress={() => answer({ decision: "allow", scope: "always" })}>{always}</Button>
        )}
        <Button look="ghost" keys="D" onPress={() => answer({ decision: "deny" })}>
          Deny
        </Button>
      </div>
    </div>
  );
};
