// Formats the user's answers to the model's questions as the text that the model receives. Pure.

export type Question = {
  readonly header: string;
  readonly question: string;
  readonly options: readonly { readonly label: string; readonly description: string }[];
};

/** The text for the model (facts/chats 5.1): the label alone, or numbered lines. */
export const formatAnswers = (questions: readonly Question[], answers: readonly string[]): string =>
  questions.length === 1
    ? (answers[0] ?? "")
    : questions.map(({ header }, index) => `${index + 1}. ${header}: ${answers[index] ?? ""}`).join("\n");
