/** Settings from the environment. */

/** In `.env` files and containers an empty value means "not set". @returns the other values, without spaces around them. */
export function readGivenValues(
  environment: Record<string, string | undefined>,
): Record<string, string> {
  const given: Record<string, string> = {};
  for (const [name, value] of Object.entries(environment)) {
    const text = value?.trim();
    if (text) given[name] = text;
  }
  return given;
}
