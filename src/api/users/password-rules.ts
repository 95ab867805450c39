// What a new password must be like.
const COMMON = new Set(
  "password password1 passw0rd 12345678 123456789 1234567890 qwertyui qwertyuiop iloveyou sunshine princess football baseball superman trustno1 letmein1 welcome1 changeme admin123 administrator".split(
    " ",
  ),
);

/** What is wrong with a new password, in words for people; empty when nothing is. */
export const passwordProblem = (password: string): string => {
  const length = [...password].length;
  if (length < 8) return "Use at least 8 characters.";
  if (length > 128) return "Use at most 128 characters.";
  if (new Set(password).size < 4) return "Use more different characters.";
  if (COMMON.has(password.toLowerCase())) return "This password is one of the first that others would try.";
  return "";
};
