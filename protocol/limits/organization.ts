/** Bounds of who is connected and of who watches, in one organization. Units are in the names. */

/** A tunnel that was heard of within this time is not asked again whether its agent is there. */
export const ATTENDANCE_FRESH_MS = 20_000;
/** Tunnels that one list asks: the platform bounds the calls of one event. */
export const ATTENDANCE_ASKED_MAX_TUNNELS = 5_000;
export const ATTENDANCE_ASKED_AT_ONCE = 64;
/** That an agent left is remembered for this long, so that late news of its arrival changes nothing. */
export const ATTENDANCE_LEFT_KEEP_MS = 3600_000;

/** When an agent comes back whose connection somebody ended. */
export const ENDED_RETRY_MIN_MS = 4_500;
export const ENDED_RETRY_MAX_MS = 5_500;
