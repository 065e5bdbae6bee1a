import { z } from "zod";
import { STATUS_BY_CODE, type ErrorCode } from "../errors.ts";

/** The body of every error response. */
export const ErrorBody = z.object({
  error: z.enum(Object.keys(STATUS_BY_CODE) as [ErrorCode, ...ErrorCode[]]),
  message: z.string(),
  fields: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
  retry_after_seconds: z.int().optional(),
});
export type ErrorBody = z.infer<typeof ErrorBody>;
