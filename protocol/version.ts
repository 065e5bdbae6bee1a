/** Reported by `/health` and by the agent. A test checks that package.json has the same version. */
export const SERVICE_VERSION = "0.3.7";
