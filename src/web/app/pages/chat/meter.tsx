// The chat's context usage and cost, according to the latest answers.
import { call } from "../../data/api.ts";
import { useChange, useResource } from "../../data/resource.ts";
import { useModels } from "./choices.tsx";
import type { LiveChat } from "./live-chat.ts";
import { countContextTokens, findContextLimit } from "./picture.ts";

const formatTokens = (tokens: number): string => (tokens < 1_000 ? String(tokens) : `${Math.round(tokens / 1_000)}k`);
let money: Intl.NumberFormat | undefined;
/** The number formatter is created on first use: that takes milliseconds, which would delay opening a chat. */
const formatDollars = (amount: number): string => {
  money ??= new Intl.NumberFormat(undefined, { style: "currency", currency: "USD", minimumFractionDigits: 2 });
  return money.format(amount);
};

export const Meter = ({ chat, isOwner }: { chat: LiveChat; isOwner: boolean }) => {
  const models = useModels();
  const { state, reload } = useResource(isOwner ? `chat cost ${chat.id}` : undefined, () =>
    call("GET /chats/:chat/cost", { path: { chat: chat.id } }),
  );
  useChange(String(chat.turnCount.value), reload);
  const tokens = countContextTokens(chat.messages.value);
  const id = chat.chat.value?.last_model_config_id;
  // A coding agent chooses its own model and reports its context limit.
  const usesModel = (chat.chat.value?.coding_agent ?? null) === null;
  const contextLimit = usesModel
    ? models.find((one) => one.id === id)?.context_limit
    : findContextLimit(chat.messages.value);
  const limit = contextLimit ?? 0;
  const cost = (state.value.data?.total_cost_micros ?? 0) / 1_000_000;
  if (tokens === 0 && cost === 0) return null;
  const percent = limit > 0 ? Math.min(100, Math.round((tokens / limit) * 100)) : 0;
  return (
    <span
      class="line small mut desk"
      title={limit > 0 ? `${formatTokens(tokens)} of ${formatTokens(limit)} tokens` : undefined}
    >
      {limit > 0 && (
        <svg
          class="gauge short"
          viewBox="0 0 100 4"
          preserveAspectRatio="none"
          role="img"
          aria-label={`Context used: ${percent} %`}
        >
          <rect class="tr" width="100" height="4" />
          <rect class={percent > 80 ? "w" : "v"} width={percent} height="4" />
        </svg>
      )}
      <span class="num">{formatTokens(tokens)}</span>
      {cost > 0 && <span class="num dim">{formatDollars(cost)}</span>}
    </span>
  );
};
