// Fields that most wire shapes share: IDs and times.
import { Type as t } from "@sinclair/typebox";

const toOptions = (description: string | undefined) => (description === undefined ? {} : { description });

export const uuid = (description?: string) => t.String({ format: "uuid", ...toOptions(description) });

/** RFC 3339. */
export const time = (description?: string) => t.String({ format: "date-time", ...toOptions(description) });

export const optionalTime = (description: string) => t.Optional(time(description));
