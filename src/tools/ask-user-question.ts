// The tool `ask_user_question`: asks questions with suggested answers, and ends the turn (facts/chats 5.1). The answer is an ordinary
// message: the chosen label or `Other: ...`, with numbered lines for several questions.
import { Type as t } from "@sinclair/typebox";
import description from "./ask-user-question.txt" with { type: "text" };
import { defineTool } from "./tool.ts";

const MAX_QUESTIONS = 10;
const toTextSchema = (maxLength: number, words: string) =>
  t.String({ minLength: 1, maxLength, pattern: "\\S", description: words });

export const askUserQuestion = defineTool({
  name: "ask_user_question",
  description,
  changes_nothing: true,
  only_reads: true,
  ends_turn: true,
  input_schema: t.Object(
    {
      questions: t.Array(
        t.Object(
          {
            header: toTextSchema(100, "The topic in one or two words."),
            question: toTextSchema(2_000, "The complete question."),
            options: t.Array(
              t.Object(
                {
                  label: toTextSchema(200, "The answer, in a few words."),
                  description: toTextSchema(2_000, "The effect of this answer."),
                },
                { additionalProperties: false },
              ),
              {
                minItems: 2,
                maxItems: 4,
                description: "The answers to choose from; the user can always give another one.",
              },
            ),
          },
          { additionalProperties: false },
        ),
        { minItems: 1, maxItems: MAX_QUESTIONS },
      ),
    },
    { additionalProperties: false },
  ),
  run: async (_, { questions }) => ({ questions }),
});
