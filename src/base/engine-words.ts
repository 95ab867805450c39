// What an engine of containers says for itself.

/** The own words of an error answer, or its status. */
export const engineWords = async (response: Response): Promise<string> => {
  const text = (await response.text()).slice(0, 4096).trim();
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    if (typeof message === "string" && message !== "") return message;
  } catch {
    // Not JSON: something in between has answered.
  }
  return text || `status ${response.status}`;
};
