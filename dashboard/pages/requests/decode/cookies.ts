/** The cookies of `Cookie` and `Set-Cookie` headers (RFC 6265), as they were sent. */
import { FIELDS_MAX, type NameAndValue } from "./form.ts";

/** @param value of a `Cookie` header. */
export function parseCookies(value: string): NameAndValue[] {
  return value
    .split(";", FIELDS_MAX)
    .map((pair) => splitPair(pair.trim()))
    .filter(({ name, value: text }) => name !== "" || text !== "");
}

interface ResponseCookie extends NameAndValue {
  /** `Path=/; Secure`. */
  attributes: string;
}

/** @param value the values of all `Set-Cookie` headers, one per line. */
export function parseResponseCookies(value: string): ResponseCookie[] {
  return value.split("\n", FIELDS_MAX).map((line) => {
    const [pair = "", ...attributes] = line.split(";");
    return {
      ...splitPair(pair.trim()),
      attributes: attributes.map((each) => each.trim()).join("; "),
    };
  });
}

function splitPair(pair: string): NameAndValue {
  const at = pair.indexOf("=");
  return at < 0
    ? { name: "", value: pair }
    : { name: pair.slice(0, at), value: pair.slice(at + 1) };
}
