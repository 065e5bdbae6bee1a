/**
 * Fills a database as years of use would: one organization with many rows of every kind, and many organizations with
 * few. PostgreSQL generates the rows itself, in seconds where requests would take hours.
 */

export interface DatabaseSizes {
  /** Organizations with one owner and one row of every kind. */
  organizations: number;
  /** How many the large organization has, deleted ones included. */
  tunnels: number;
  /** How many of these are not deleted. */
  liveTunnels: number;
  /** How many the large organization has. */
  auditEvents: number;
  /** How many the large organization has in every other table that has no bound of its own. */
  rows: number;
}

/** The large organization and its owner. */
export interface LargeOrganization {
  orgId: string;
  userId: string;
}

type Query = (text: string, values?: unknown[]) => Promise<unknown>;

/** Members of the large organization, as many as one may have. */
const MEMBERS = 900;
/** Its receivers and its networks. */
const RESOURCES = 90;

export async function fillDatabase(
  query: Query,
  large: LargeOrganization,
  sizes: DatabaseSizes,
): Promise<void> {
  await query("begin");
  for (const statement of buildStatements(large, sizes)) await query(statement);
  await query("commit");
  // Also sets the visibility map, as autovacuum would: index-only scans depend on it.
  await query("vacuum analyze");
}

/** Spreads rows over the last year, the newest last. */
const AGE = "now() - interval '1 year' * (1 - n::float8 / total) - interval '1 minute'";
const RANDOM_HASH = "encode(sha256(gen_random_uuid()::text::bytea), 'hex')";
const TOKEN_HASH_AND_EXPIRY = `${RANDOM_HASH}, ${AGE} + interval '400 days'`;

function* buildStatements(
  { orgId, userId }: LargeOrganization,
  { organizations, tunnels, liveTunnels, auditEvents, rows }: DatabaseSizes,
): Iterable<string> {
  yield `create temporary table owner on commit drop as
    select gen_random_uuid() as user_id, gen_random_uuid() as org_id, n, ${organizations} as total
    from generate_series(1, ${organizations}) as n`;
  yield `insert into users (id, email, password_hash, email_verified_at, mails_since, created_at)
    select user_id, 'owner-' || n || '@filled.example', 'none', now(), ${AGE}, ${AGE} from owner`;
  yield `insert into organizations (id, name, slug, plan, approval_status, created_at)
    select org_id, 'Filled', 'filled-' || n, 'pro', 'approved', ${AGE} from owner`;
  yield `insert into memberships (user_id, org_id, role, created_at)
    select user_id, org_id, 'owner', ${AGE} from owner
    union all select user_id, '${orgId}', 'viewer', ${AGE} from owner where n <= ${MEMBERS}`;
  yield `insert into projects (org_id, slug, name, is_default, created_at)
    select org_id, 'default', 'Default', true, ${AGE} from owner`;
  yield* buildAccountRows();

  // One row of each kind for every other organization, among those of the large one.
  const among = (count: number) => `(
    select '${orgId}'::uuid as org_id, '${userId}'::uuid as user_id, n, ${count} as total
    from generate_series(1, ${count}) as n
    union all
    select org_id, user_id, (n::bigint * ${count} / ${organizations})::int as n, ${count} as total from owner
    order by n) as row`;
  const project = "(select id from projects where projects.org_id = row.org_id and is_default)";
  yield `insert into audit_events (org_id, user_id, action, resource_type, resource_id, ip, metadata, created_at)
    select org_id, user_id, (array['tunnel_created', 'connection_ended', 'tunnel_deleted', 'token_created', 'session_created'])[1 + n % 5],
      (array['tunnel', 'connection', 'tunnel', 'token', 'session'])[1 + n % 5], gen_random_uuid(), '192.0.2.' || n % 250,
      jsonb_build_object('subdomain', 'filled-' || n), ${AGE} from ${among(auditEvents)}`;
  yield `insert into tokens (org_id, created_by, nonce, kind, name, bandwidth_limit_mbps, tunnel_quota, issued_at, expires_at)
    select org_id, user_id, replace(gen_random_uuid()::text, '-', ''), 'agent', 'Filled ' || n, 100, 5, ${AGE},
      ${AGE} + interval '1 year' from ${among(rows)}`;
  yield `insert into tunnels (org_id, project_id, name, subdomain, protocol, local_port, status, created_at, deleted_at,
      total_requests, expires_at, last_seen_at)
    select org_id, ${project}, 'filled-' || n, 'filled-' || n || '-' || left(org_id::text, 8), 'http', 3000, 'offline', ${AGE},
      case when n % ${Math.round(tunnels / liveTunnels)} = 0 then null else now() end, n, now() + interval '30 days' * n / total, ${AGE}
    from ${among(tunnels)}`;
  yield `insert into hostnames (host, tunnel_id)
    select subdomain || '-' || left(id::text, 8), id from tunnels where subdomain like 'filled-%'`;
  // Names of earlier tunnels, which other organizations can claim again.
  yield `insert into hostnames (host, held_by_org_id, held_until)
    select 'released-' || left(gen_random_uuid()::text, 13), org_id, ${AGE} from ${among(rows)}`;
  yield `insert into tunnel_counters (tunnel_id, org_id, sequence, counters, ended_at, folded_at)
    select id, org_id, 1, '{"status:200": 10, "bytes:in": 1000, "bytes:out": 1000}', deleted_at, deleted_at
    from tunnels where subdomain like 'filled-%'`;
  // The last days of some tunnels.
  yield `insert into traffic (org_id, grain, starts_at, tunnel_id, requests, bytes_in, bytes_out)
    select org_id, grain, date_trunc(grain, now()) - step * n, id, 10, 1000, 1000 from (
      select tunnels.*, row_number() over (partition by org_id) as place from tunnels
      where deleted_at is null and subdomain like 'filled-%') as tunnels,
      (values ('minute', interval '1 minute'), ('hour', interval '1 hour')) as grains (grain, step),
      generate_series(0, 499) as n
    where place <= ${Math.ceil(rows / 1000)} and (n < 2 or org_id = '${orgId}')`;
  yield `insert into token_usage (token_id, org_id, month, tunnel_id, bytes, requests)
    select tokens.id, tokens.org_id, to_char(now() - interval '1 month' * (row_number() over () % 4), 'YYYY-MM'), tunnels.id, 1000, 10
    from tokens cross join lateral (select id from tunnels where tunnels.org_id = tokens.org_id limit 1) as tunnels
    where tokens.name like 'Filled %'`;
  yield `insert into ended_counters (org_id, counters) select org_id, '{"status:200": 10}' from owner`;
  yield `insert into domains (org_id, domain, verification_token, verified_at, created_at, next_proof_check_at)
    select org_id, 'filled-' || n || '-' || left(org_id::text, 8) || '.example', 'token',
      case when n % 10 > 0 then ${AGE} end, now() - interval '1 day' * n / total, now() + interval '1 day'
    from ${among(MEMBERS)}`;
  yield `insert into reserved_subdomains (org_id, subdomain, created_at)
    select org_id, 'reserved-' || n || '-' || left(org_id::text, 8), ${AGE} from ${among(rows)}`;
  yield `insert into invitations (org_id, email, role, token_hash, expires_at, revoked_at, created_at)
    select org_id, 'guest-' || n || '@filled.example', 'viewer', ${TOKEN_HASH_AND_EXPIRY},
      case when n % 100 > 0 then now() end, ${AGE} from ${among(rows)}`;
  yield `insert into projects (org_id, slug, name, created_at, deleted_at)
    select org_id, 'filled-' || n, 'Filled', ${AGE}, case when n % 100 > 0 then now() end from ${among(rows)}`;
  yield `insert into webhook_receivers (org_id, name, validator, secret, created_at)
    select org_id, 'Filled', 'code_host', 'secret', ${AGE} from ${among(RESOURCES)}`;
  yield `insert into private_networks (org_id, name, cidr, created_at)
    select org_id, 'filled-' || n, '10.88.0.0/24', ${AGE} from ${among(RESOURCES)} on conflict do nothing`;
  yield `insert into private_network_devices (network_id, name, public_key, host_number)
    select id, 'filled', ${RANDOM_HASH}, n from private_networks, generate_series(12, 14) as n`;
  yield `insert into relays (id, host, url, first_port, last_port, last_seen_at)
    values ('filled', 'filled.example', 'https://filled.example', 1, 65535, now() - interval '1 year')`;
  yield `insert into relay_ports (relay_id, protocol, port, org_id, owner_id)
    select 'filled', 'tcp', n, org_id, gen_random_uuid() from owner where n < 65536`;
  yield `insert into billing_customers (org_id, source, customer_id)
    select org_id, 'mock', 'customer-' || n from owner`;
  yield `insert into subscriptions (id, org_id, source, status, plan, cycle, cancel_at_period_end, event_at, is_entitling)
    select 'subscription-' || n, org_id, 'mock', 'active', 'pro', 'monthly', false, now(), true from owner`;
  yield `insert into billing_events (id, type, received_at)
    select 'event-' || n, 'filled', now() - interval '1 day' * n / total from owner`;
  yield `insert into device_codes (device_code_hash, user_code, label, expires_at)
    select ${RANDOM_HASH}, upper(left(${RANDOM_HASH}, 16)), 'filled', now() + interval '1 hour' from owner`;
  yield `insert into outbox (kind, payload, next_attempt_at)
    select 'tunnel_ends', '{}', now() + interval '1 year' from owner`;
}

function* buildAccountRows(): Iterable<string> {
  yield `insert into sessions (user_id, org_id, refresh_hash, expires_at, device, ip)
    select user_id, org_id, ${TOKEN_HASH_AND_EXPIRY}, 'Browser', '192.0.2.1' from owner`;
  yield `insert into identities (provider, issuer, subject, user_id)
    select 'idp_a', 'https://filled.example', n, user_id from owner`;
  yield `insert into email_codes (user_id, code_hash, expires_at)
    select user_id, ${TOKEN_HASH_AND_EXPIRY} from owner`;
  yield `insert into recovery_codes (user_id, code_hash) select user_id, ${RANDOM_HASH} from owner`;
  for (const table of ["mfa_challenges", "password_resets"]) {
    yield `insert into ${table} (user_id, token_hash, expires_at)
      select user_id, ${TOKEN_HASH_AND_EXPIRY} from owner`;
  }
  yield `insert into mfa_removals (user_id, token_hash, expires_at, usable_at)
    select user_id, ${TOKEN_HASH_AND_EXPIRY}, now() from owner`;
}
