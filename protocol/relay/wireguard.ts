/** The messages of WireGuard that relay and agent recognize (https://www.wireguard.com/protocol/). */

/** The first byte of each message. */
export const WIREGUARD = { initiation: 1, response: 2, cookie: 3, transport: 4 } as const;

export const INITIATION_BYTES = 148;
export const RESPONSE_BYTES = 92;
