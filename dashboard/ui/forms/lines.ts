/** Lists that a user types as lines of text. */
import { RequestError, type FieldError } from "../../api/request.ts";

/** Empty lines are left out. Entries can also be separated by commas. */
export function parseLines(text: string): string[] {
  return text
    .split(/[\n,]/)
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

/**
 * Reports the API's errors of single entries at the field of their list, as in `“10.0.0.0/40” must be an address block`.
 *
 * @param lists the sent entries by the name of their field.
 */
export async function withEntryErrors<Answer>(
  lists: Record<string, readonly string[]>,
  answer: Promise<Answer>,
): Promise<Answer> {
  try {
    return await answer;
  } catch (error) {
    if (!(error instanceof RequestError) || error.code === "unreachable") throw error;
    const { code, message, requestId } = error;
    const fields = error.fields.map((field) => nameEntry(field, lists));
    throw new RequestError({ error: code, message, fields }, requestId);
  }
}

/** The path `cidrs[1]` becomes `cidrs`. */
function nameEntry(
  { path, message }: FieldError,
  lists: Record<string, readonly string[]>,
): FieldError {
  const [name = "", index] = path.split(/[[\]]/);
  const entry = lists[name]?.[Number(index)];
  if (entry === undefined) return { path, message };
  return { path: name, message: `“${entry}” ${message}.` };
}
