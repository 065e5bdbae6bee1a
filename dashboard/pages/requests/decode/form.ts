/** The names and values of a URL-encoded form, or of a query. */

/** Further fields are not shown. */
export const FIELDS_MAX = 1_000;

export interface NameAndValue {
  name: string;
  value: string;
}

/** @param text a query without the question mark, or the body of a form. Invalid escapes stay as they are. */
export function parseForm(text: string): { fields: NameAndValue[]; isCut: boolean } {
  const pairs = text.split("&", FIELDS_MAX + 1).filter((pair) => pair !== "");
  const fields = pairs.slice(0, FIELDS_MAX).flatMap((pair) => {
    const [[name, value] = ["", ""]] = new URLSearchParams(pair);
    return [{ name, value }];
  });
  return { fields, isCut: pairs.length > FIELDS_MAX };
}
