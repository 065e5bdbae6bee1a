/** JSON for people to read. */

const INDENT = "  ";
/** The indentation of deeper JSON would be larger than the JSON. */
const DEPTH_MAX = 64;

/**
 * Indents JSON. Numbers and strings stay as they were sent: parsing them would change large numbers.
 *
 * @returns null for text that is not JSON, or too deep.
 */
export function formatJson(text: string): string | null {
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
  const parts: string[] = [];
  let depth = 0;
  for (const [index, token] of tokens.entries()) {
    const previous = tokens[index - 1];
    const isOpen = previous === "{" || previous === "[";
    const isEnd = token === "}" || token === "]";
    if (isEnd) depth -= 1;
    if ((isOpen && !isEnd) || previous === "," || (isEnd && !isOpen)) {
      parts.push("\n", INDENT.repeat(depth));
    }
    parts.push(token === ":" ? ": " : token);
    if (token === "{" || token === "[") depth += 1;
    if (depth > DEPTH_MAX) return null;
  }
  return parts.join("");
}
