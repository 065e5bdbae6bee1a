/** What `/health` and the agent say of themselves; package.json carries the same (a test compares). */
export const SERVICE_VERSION = "0.3.7";
