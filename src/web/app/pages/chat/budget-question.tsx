// Shown when a turn waits for a budget: which budget, until when, and a button to raise it for users with permission.

import { formatAmount, formatBudgetTitle } from "#schema/ai/budget-words.ts";
import type { ActionRequired } from "#schema/chats/chat-event.ts";
import { call } from "../../data/api.ts";
import { isSiteOwner, me } from "../../data/session.ts";
import { Button } from "../../parts/button.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Time } from "../../parts/time.tsx";
import type { LiveChat } from "./live-chat.ts";

type Props = {
  readonly chat: LiveChat;
  readonly budget: NonNullable<ActionRequired["budget"]>;
  readonly isOwner: boolean;
};

export const BudgetQuestion = ({ chat, budget, isOwner }: Props) => {
  const { budget_id, unit, limit, spent, suggested, resets_at, deciders } = budget;
  const canRaise = isSiteOwner.value || deciders.some(({ id }) => id === me.value?.id);
  const suggestedAmount = formatAmount(unit, suggested);
  return (
    <div class="ask" role="group" aria-labelledby="budget-question">
      <div class="line">
        <span class="t-attn">
          <Icon name="clock" />
        </span>
        <h3 id="budget-question">{canRaise ? `Continue with ${suggestedAmount} more?` : "Waiting for a budget"}</h3>
      </div>
      <p class="small">
        {formatBudgetTitle(budget)} is used up: {formatAmount(unit, spent)} of {formatAmount(unit, limit)}. The chat
        continues when it resets <Time at={resets_at} />
        {!canRaise && deciders.length > 0 && <>, or when {formatNames(deciders)} raises it</>}.
      </p>
      <div class="line wrap">
        {canRaise && (
          <Button
            look="primary"
            onPress={() =>
              call("POST /ai/budgets/:budget/raise", { path: { budget: budget_id }, body: { amount: suggested } })
            }
          >
            Continue
          </Button>
        )}
        {isOwner && (
          <Button look="ghost" onPress={() => call("POST /chats/:chat/interrupt", { path: { chat: chat.id } })}>
            Stop
          </Button>
        )}
      </div>
    </div>
  );
};

const MAX_NAMED = 3;

const formatNames = (deciders: readonly { readonly name: string }[]): string => {
  const names = deciders.slice(0, MAX_NAMED).map(({ name }) => name);
  const last = names.pop() ?? "";
  return names.length === 0 ? last : `${names.join(", ")} or ${last}`;
};
