// Reads the error messages of container engines.

/** Returns the message of an error response, or its status. */
export const readEngineError = async (response: Response): Promise<string> => {
  const text = (await response.text()).slice(0, 4096).trim();
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    if (typeof message === "string" && message !== "") return message;
  } catch {
    // Not JSON: something between us and the engine responded.
  }
  return text || `status ${response.status}`;
};
