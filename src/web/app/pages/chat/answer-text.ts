// Answers to questions of the model, as it is told them. Pure.

export type Question = {
  readonly header: string;
  readonly question: string;
  readonly options: readonly { readonly label: string; readonly description: string }[];
};

/** What the model is told (facts/chats 5.1): the label alone, or numbered lines. */
export const answerText = (questions: readonly Question[], answers: readonly string[]): string =>
  questions.length === 1
    ? (answers[0] ?? "")
    : questions.map(({ header }, at) => `${at + 1}. ${header}: ${answers[at] ?? ""}`).join("\n");
