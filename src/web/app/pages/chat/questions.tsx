// Questions from the model with suggested answers. The answer is an ordinary message.
import { useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import type { ChatMessagePart } from "#schema/chats/chat-part.ts";
import { Button } from "../../parts/button.tsx";
import { sendText } from "./actions.ts";
import { formatAnswers, type Question } from "./answer-text.ts";
import { isAnswered } from "./is-answered.ts";
import type { LiveChat } from "./live-chat.ts";

const OTHER_VALUE = "\u0000other";

export const Questions = ({ chat, part }: { chat: LiveChat; part: ChatMessagePart }) => {
  const { questions = [] } = (part.result ?? {}) as { questions?: readonly Question[] };
  const chosen = useSignal<readonly (string | undefined)[]>([]);
  const other = useSignal<readonly string[]>([]);
  const name = useId();
  const isDone = isAnswered(chat, part);
  const answers = questions.map((_, at) => {
    const label = chosen.value[at];
    return label === OTHER_VALUE ? `Other: ${(other.value[at] ?? "").trim()}` : label;
  });
  const isWhole = answers.every((answer) => answer !== undefined && answer !== "Other: ");
  const pick = (at: number, label: string): void => {
    chosen.value = Object.assign([...chosen.value], { [at]: label });
  };
  return (
    <div class={isDone ? "ask done" : "ask"} role="group" aria-label="Question">
      {questions.map(({ header, question, options }, at) => (
        <fieldset key={header} class="question" disabled={isDone}>
          <legend>{header}</legend>
          <p>{question}</p>
          {[...options, { label: OTHER_VALUE, description: "" }].map(({ label, description }) => (
            <label key={label} class="line">
              <input
                type="radio"
                name={`${name}-${at}`}
                checked={chosen.value[at] === label}
                onChange={() => pick(at, label)}
              />
              <span>
                <span class="med">{label === OTHER_VALUE ? "Other answer" : label}</span>
                {description && <span class="small mut"> {description}</span>}
              </span>
            </label>
          ))}
          {chosen.value[at] === OTHER_VALUE && (
            <input
              class="input"
              aria-label={`Your answer: ${header}`}
              value={other.value[at] ?? ""}
              onInput={({ currentTarget: { value } }) => {
                other.value = Object.assign([...other.value], { [at]: value });
              }}
            />
          )}
        </fieldset>
      ))}
      {!isDone && (
        <div class="line">
          <Button
            look="primary"
            disabled={!isWhole}
            onPress={() => sendText(chat, formatAnswers(questions, answers as string[]))}
          >
            Answer
          </Button>
        </div>
      )}
    </div>
  );
};
