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
  const chosenLabels = useSignal<readonly (string | undefined)[]>([]);
  const otherAnswers = useSignal<readonly string[]>([]);
  const name = useId();
  const isDone = isAnswered(chat, part);
  const answers = questions.map((_, index) => {
    const label = chosenLabels.value[index];
    return label === OTHER_VALUE ? `Other: ${(otherAnswers.value[index] ?? "").trim()}` : label;
  });
  const areAllAnswered = answers.every((answer) => answer !== undefined && answer !== "Other: ");
  const pick = (index: number, label: string): void => {
    chosenLabels.value = Object.assign([...chosenLabels.value], { [index]: label });
  };
  return (
    <div class={isDone ? "ask done" : "ask"} role="group" aria-label="Question">
      {questions.map(({ header, question, options }, index) => (
        <fieldset key={header} class="question" disabled={isDone}>
          <legend>{header}</legend>
          <p>{question}</p>
          {[...options, { label: OTHER_VALUE, description: "" }].map(({ label, description }) => (
            <label key={label} class="line">
              <input
                type="radio"
                name={`${name}-${index}`}
                checked={chosenLabels.value[index] === label}
                onChange={() => pick(index, label)}
              />
              <span>
                <span class="med">{label === OTHER_VALUE ? "Other answer" : label}</span>
                {description && <span class="small mut"> {description}</span>}
              </span>
            </label>
          ))}
          {chosenLabels.value[index] === OTHER_VALUE && (
            <input
              class="input"
              aria-label={`Your answer: ${header}`}
              value={otherAnswers.value[index] ?? ""}
              onInput={({ currentTarget: { value } }) => {
                otherAnswers.value = Object.assign([...otherAnswers.value], { [index]: value });
              }}
            />
          )}
        </fieldset>
      ))}
      {!isDone && (
        <div class="line">
          <Button
            look="primary"
            disabled={!areAllAnswered}
            onPress={() => sendText(chat, formatAnswers(questions, answers as string[]))}
          >
            Answer
          </Button>
        </div>
      )}
    </div>
  );
};
