// Checks whether the server has its first user.
import { call, Problem } from "./api.ts";

export const isSetUp = async (): Promise<boolean> => {
  try {
    await call("GET /users/first");
    return true;
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return false;
    throw error;
  }
};
