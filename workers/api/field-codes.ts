/** Fields whose mistakes have an error code of their own, instead of `invalid_request`. */
import type { ErrorCode } from "../../protocol/errors.ts";
import { ApiError } from "../errors.ts";
import { describeField, invalidInput, type ApiContext } from "./route.ts";

type InvalidInput = Parameters<typeof invalidInput>[1];
type Validation = { success: true } | ({ success: false } & InvalidInput);

/** @returns a hook of routes that decides by the first invalid field. Every other field is still `invalid_request`. */
export function createFieldHook(codeByField: Partial<Record<string, ErrorCode>>) {
  return (result: Validation, c: ApiContext): undefined => {
    if (result.success) return;
    const error = invalidInput(c, result);
    const [field] = error.details.fields ?? [];
    const code = result.target === "json" && field ? codeByField[field.path] : undefined;
    if (!code || !field) throw error;
    throw new ApiError(code, describeField(field), error.details);
  };
}
