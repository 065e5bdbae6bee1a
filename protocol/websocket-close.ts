/**
 * Whether a Close frame may have this code (RFC 6455 §7.4 and the registry of IANA): 1004, 1005, 1006 and 1015 are never in a
 * frame, and 1016 to 2999 are not assigned.
 */
export function isSendableCloseCode(code: number): boolean {
  if (code >= 3000 && code <= 4999) return true;
  return code >= 1000 && code <= 1014 && (code < 1004 || code > 1006);
}
