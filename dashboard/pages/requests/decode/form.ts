/** Names and values: of queries, URL-encoded forms and cookies. */

/** More are not shown. */
export const FIELDS_MAX = 1_000;

export interface FormField {
  name: string;
  value: string;
}

/** @param text a query without the question mark, or the body of a form. Invalid escapes stay as they are. */
export function parseForm(text: string): { fields: FormField[]; isCut: boolean } {
  const pairs = text.split("&", FIELDS_MAX + 1).filter((pair) => pair !== "");
  const fields = pairs.slice(0, FIELDS_MAX).flatMap((pair) => {
    const [[name, value] = ["", ""]] = new URLSearchParams(pair);
    return [{ name, value }];
  });
  return { fields, isCut: pairs.length > FIELDS_MAX };
}

/** The value of a `Cookie` header. */
export function parseCookies(value: string): FormField[] {
  return value
    .split(";", FIELDS_MAX)
    .map((pair) => splitPair(pair.trim()))
    .filter(({ name, value: text }) => name !== "" || text !== "");
}

export interface ResponseCookie extends FormField {
  /** `Path=/; Secure`. */
  attributes: string;
}

/** The values of `Set-Cookie` headers, one a line. */
export function parseResponseCookies(value: string): ResponseCookie[] {
  return value.split("\n", FIELDS_MAX).map((line) => {
    const [pair = "", ...attributes] = line.split(";");
    return {
      ...splitPair(pair.trim()),
      attributes: attributes.map((each) => each.trim()).join("; "),
    };
  });
}

function splitPair(pair: string): FormField {
  const at = pair.indexOf("=");
  return at < 0
    ? { name: "", value: pair }
    : { name: pair.slice(0, at), value: pair.slice(at + 1) };
}
