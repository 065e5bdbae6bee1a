import { z } from "zod";
import { ERROR_CODES } from "../errors.ts";

const InvalidField = z.object({
  path: z
    .string()
    .describe("The field or the parameter, such as `cidrs[1]`; empty for the whole body."),
  message: z.string().describe("The rule that it breaks, which continues its name."),
});

/** The body of every error response. */
export const ErrorBody = z.object({
  error: z.enum(ERROR_CODES),
  message: z.string(),
  fields: z
    .array(InvalidField)
    .optional()
    .describe(
      "The invalid fields of the request. Each `invalid_request` has the list, which is empty when no field is invalid.",
    ),
  retry_after_seconds: z.int().optional(),
});
export type ErrorBody = z.infer<typeof ErrorBody>;
