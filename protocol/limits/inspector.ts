/** Bounds of reading, exporting and replaying captured requests. */

/** The newest of an organization are looked for at as many of its tunnels: those that were served last. */
export const INSPECTOR_MAX_TUNNELS = 100;
export const INSPECTOR_LIST_MAX_ROWS = 500;
export const INSPECTOR_LIST_DEFAULT_ROWS = 100;
/** What a filter looks for in a path. */
export const INSPECTOR_PATH_MAX_CHARS = 1_000;

/** Of an archive in JSON. From there on bodies and messages are left out, and it says so. */
export const HAR_WHOLE_MAX_CHARS = 32 * 1024 * 1024;
/** Captured requests that are read at once while an archive is written: each can be several megabytes. */
export const HAR_READ_AT_ONCE = 4;
/** A packed body unpacks to no more than this; one that would is left as it was sent. */
export const BODY_UNPACKED_MAX_BYTES = 2 * 1024 * 1024;
/** Text in a command is more than a shell takes as one argument from here on: it goes through a pipe. */
export const CURL_ARGUMENT_MAX_BYTES = 64 * 1024;
/** Invisible characters in such a text: each is written as a command of its own. */
export const CURL_SPELLED_MAX = 200;

export const METHOD_MAX_CHARS = 32;
/** Of an edited path, and of an edited query. */
export const REPLAY_TARGET_MAX_CHARS = 8_000;
export const REPLAY_MAX_HEADERS = 100;
export const REPLAY_BODY_MAX_BYTES = 512 * 1024;

/** What is told of two bodies that differ. */
export const COMPARISON_MAX_DIFFERENCES = 100;
export const COMPARISON_MAX_DEPTH = 64;
/** Of a JSON pointer: what is below such a one is not looked at. */
export const COMPARISON_PATH_MAX_CHARS = 2_000;
export const COMPARISON_VALUE_MAX_CHARS = 200;
