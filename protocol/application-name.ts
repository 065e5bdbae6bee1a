/**
 * The `application_name` of PostgreSQL's protocol that the Worker sends with each query and transaction. It says for whom they
 * run, so that the gateway can share its connections; Neon shows it in `pg_stat_activity`.
 */

const SERVICE = "underpass";

/** @param caller the id of an organization, or the group of an address; undefined for the server's own work. */
export function formatApplicationName(caller: string | undefined): string {
  return caller === undefined ? SERVICE : `${SERVICE} ${caller}`;
}

/** @returns the caller; undefined for the server's own work, and when another program chose the name. */
export function parseApplicationName(name: string): string | undefined {
  const [service, caller] = name.split(" ");
  return service === SERVICE ? caller : undefined;
}
