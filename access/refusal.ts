/** Why a visitor does not get through, and how the edge tells its tunnel's object what it found. */
import { ERROR_HEADER, isErrorCode, STATUS_BY_CODE, type ErrorCode } from "../protocol/errors.ts";
import { equalInConstantTime } from "../shared/constant-time.ts";
import type { Gates } from "./settings.ts";

export interface Refusal {
  code: ErrorCode;
  /** Carried to the visitor. */
  headers?: Record<string, string>;
  /** For people, instead of the page's own text. */
  message?: string;
}

export function retryAfter(code: ErrorCode, waitMs: number) {
  return { code, headers: { "retry-after": String(Math.max(1, Math.ceil(waitMs / 1000))) } };
}

/** The object's answer, of which the edge makes a page. */
export function refuse({ code, headers, message }: Refusal): Response {
  const answer = new Response(message ?? null, { status: STATUS_BY_CODE[code], headers });
  answer.headers.set(ERROR_HEADER, code);
  return answer;
}

/** None of our own refusals has a lower status, so that most answers need not be looked at. */
const REFUSAL_MIN_STATUS = 401;

/** Why an answer of the object is not the local server's; null when it is. */
export function refusalOf(answer: Response): ErrorCode | null {
  if (answer.status < REFUSAL_MIN_STATUS) return null;
  const code = answer.headers.get(ERROR_HEADER);
  return code !== null && isErrorCode(code) ? code : null;
}

/**
 * In a request from the edge: the seal of the gates that it judged by and, if they refused, how. A visitor
 * can send such a line, and can't know the seal.
 */
export const JUDGED_HEADER = "underpass-judged";

export function writeVerdict({ seal }: Gates, refusal: Refusal | null): string {
  return refusal === null ? seal : `${seal} ${JSON.stringify(refusal)}`;
}

/** @returns undefined when it was not judged by these gates, null when they let it through. */
export function readVerdict(judged: string | null, gates: Gates): Refusal | null | undefined {
  if (judged === null || !isSealed(judged, gates)) return undefined;
  const refusal = judged.slice(gates.seal.length);
  return refusal === "" ? null : (JSON.parse(refusal) as Refusal);
}

/** Whether the edge judged by these gates. */
export function isSealed(judged: string | null, { seal }: Gates): boolean {
  return judged !== null && equalInConstantTime(judged.slice(0, seal.length), seal);
}
